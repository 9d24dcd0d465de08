// What the panels of a live model are made with: elements, numbers in words, pictures, a worker.
// Pictures have the colours of `root`, or the page's.
function minivitTools(root) {
  "use strict";

  /** An element: h("button", { class: "wide", onclick: f }, "text", child). */
  function h(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child != null));
    return element;
  }

  const button = (words, onclick) => h("button", { type: "button", class: "live-button", onclick }, words);
  const range = (length) => [...Array(length).keys()];
  const percent = (p) => `${(100 * p).toFixed(1)}\u00a0%`;
  /** A small number in words; of one above a thousandth its per cent. */
  function power(x) {
    if (x < 1e-15) return "rounding";
    if (x > 1e-3) return percent(x);
    return powerOfTen(x);
  }
  /** 3e-6 as 3 × 10⁻⁶. */
  function powerOfTen(v) {
    const [digits, power] = v.toExponential(0).split("e");
    const small = String(Math.abs(power)).replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);
    return `${digits} × 10${power < 0 ? "⁻" : ""}${small}`;
  }
  const best = (values) => values.indexOf(Math.max(...values));
  function softmax(logits) {
    const e = logits.map((v) => Math.exp(v - Math.max(...logits)));
    return e.map((v) => v / e.reduce((a, b) => a + b, 0));
  }

  /** Bytes as a canvas, a pixel each. */
  function drawImage(canvas, bytes, [height, width], channels) {
    [canvas.width, canvas.height] = [width, height];
    const data = new ImageData(width, height);
    for (let i = 0; i < width * height; i++) {
      for (let c = 0; c < 3; c++) data.data[4 * i + c] = bytes[i * channels + (channels == 3 ? c : 0)];
      data.data[4 * i + 3] = 255;
    }
    canvas.getContext("2d").putImageData(data, 0, 0);
    return canvas;
  }

  /** Numbers as shades, of one colour, or for and against; `most` is the strongest if none is larger. */
  function drawMap(canvas, values, [rows, columns], signed = false, most = 1e-9) {
    [canvas.width, canvas.height] = [columns, rows];
    const context = canvas.getContext("2d"), top = Math.max(...values.map(Math.abs), most);
    const style = getComputedStyle(root ?? document.documentElement);
    const [plus, minus] = [signed ? "--live-for" : "--live-primary", "--live-against"]
      .map((name) => style.getPropertyValue(name).trim());
    values.forEach((v, i) => {
      context.globalAlpha = ((signed ? 0.85 : 1) * Math.abs(v)) / top;
      context.fillStyle = v < 0 ? minus : plus;
      context.fillRect(i % columns, Math.floor(i / columns), 1, 1);
    });
    return canvas;
  }

  /**
   * A worker that answers questions in turn. Of those of one kind that wait, the last alone is
   * answered: who draws fast wants the answer to what stands there now.
   */
  function newWorker() {
    const text = `const engine = (${minivitEngine})(), solver = (${minivitSolve})();
      (${minivitWorker})(engine, (${minivitUnwind})(engine, solver), (${minivitLevel})(solver))`;
    const worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
    let busy = null, waiting = [];
    const next = () => {
      busy = waiting.shift() ?? null;
      if (busy) worker.postMessage(busy.question);
    };
    worker.onmessage = ({ data }) => {
      if (data.error) busy.reject(new Error(data.error));
      else busy.resolve(data.answer);
      next();
    };
    const ask = (question) => new Promise((resolve, reject) => {
      waiting = waiting.filter((one) => one.question.ask != question.ask);
      waiting.push({ question, resolve, reject });
      if (!busy) next();
    });
    return Object.assign(ask, { end: () => worker.terminate() });
  }

  return { h, button, range, percent, power, powerOfTen, best, softmax, drawImage, drawMap, newWorker };
}
