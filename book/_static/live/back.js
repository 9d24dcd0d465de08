// The panel of the way back, see unwind.js: from the tokens after a block to the image, step by step.
function minivitBack(tools) {
  "use strict";
  const { h, button, range, power, drawImage } = tools;
  const SVG = "http://www.w3.org/2000/svg";
  const PARTS = { attention: "attention", mixing: "mixing", mlp: "MLP" };
  const DEEPEST = -16; // power of ten of the error at the foot of a curve
  const FRAME = 180; // milliseconds that an image of the last search stands

  /** Errors, one after another, as a curve: each step of its height is a power of ten. */
  function curve(residuals, label) {
    const height = (error) => Math.min(16, Math.max(0, (16 * Math.log10(error || 1e-16)) / DEEPEST));
    const longest = Math.max(...residuals.map((list) => list.length - 1), 1);
    const svg = document.createElementNS(SVG, "svg");
    for (const [name, value] of Object.entries({
      viewBox: "0 0 32 16", preserveAspectRatio: "none", class: "live-curve", role: "img", "aria-label": label,
    })) svg.setAttribute(name, value);
    for (const list of residuals) {
      const line = document.createElementNS(SVG, "polyline");
      line.setAttribute("points", list.map((e, k) => `${(32 * k) / longest},${height(e)}`).join(" "));
      svg.append(line);
    }
    return svg;
  }

  return function back(model) {
    const { about: { config }, ask, switches, state } = model;
    const strip = h("ol", { class: "live-way" }), verdict = h("p", { class: "live-hint", "aria-live": "polite" });
    const start = button("Go back", go);
    start.classList.add("live-go");
    const from = h("fieldset", { class: "live-modes" }, h("legend", {}, "From the tokens after block"),
      ...range(config.depth).map((b) => h("label", {}, h("input", {
        type: "radio", name: `back-${model.number}`, value: b, checked: b == config.depth - 1, onchange: forget,
      }), ` ${b + 1}`)));
    const element = h("section", { class: "live-search live-back", "aria-label": "The way back" },
      h("p", { class: "live-name" }, "The way back"),
      h("p", { class: "live-hint" }, "Are the pixels still in the tokens? Each block is undone by solving its "
        + "equation, from the tokens alone."),
      h("div", { class: "live-row" }, from, start), verdict, strip);
    let runs = 0, shown = null;

    /** What was found belongs to another image, or to other switches. */
    function forget() {
      runs++;
      shown = null;
      strip.replaceChildren();
      verdict.textContent = "";
      start.disabled = false;
    }

    const bytesOf = (image) => model.bytesOf(image);
    function step(title, image, words, residuals) {
      const canvas = drawImage(h("canvas", { role: "img", "aria-label": `${title}: the image` }),
        bytesOf(image), config.image_size, config.channels);
      const one = h("li", {}, canvas, h("strong", {}, title), ...words.map((text) => h("span", {}, text)),
        residuals ? curve(residuals, "The error falls, iteration by iteration") : null);
      strip.append(one);
      return canvas;
    }

    async function go() {
      forget();
      const run = ++runs, block = Number(from.querySelector(":checked").value);
      const mine = () => run == runs;
      start.disabled = true;
      shown = model.answer;
      try {
        if ([...state.removed].some((key) => key.startsWith("residual"))) {
          throw new Error("Without its residual connection a block hands nothing on unchanged, and this way "
            + "back is closed. Put it back, and try again.");
        }
        verdict.textContent = "Solving …";
        const first = await ask({ ask: "back", bytes: state.bytes, switches: switches(), block });
        if (!mine()) return;
        step(`After block ${block + 1}`, first.image, ["its tokens, read as patches", `${first.decibels.toFixed(0)} dB`]);
        const others = [];
        let last = null, stage;
        while ((stage = await ask({ ask: "stage" }))) {
          if (!mine()) return;
          if (stage.path) last = await pixels(stage, mine);
          else undone(stage, others);
          if (!mine()) return;
        }
        conclude(last, block, others);
      } catch (error) {
        if (mine()) verdict.textContent = error.message;
      }
      if (mine()) start.disabled = false;
    }

    function undone(stage, others) {
      const newton = stage.newtons.some(Boolean);
      if (stage.off > 1e-6) others.push(stage.block + 1);
      step(`Block ${stage.block + 1} undone`, stage.image, [
        stage.parts.map((part, k) => `${PARTS[part]} in ${stage.residuals[k].length}`).join(", ")
          + ` steps${newton ? ", Newton's too" : ""}`,
        stage.off > 1e-6 ? "other tokens, same output" : `${stage.decibels.toFixed(0)} dB`,
      ], stage.residuals);
    }

    /** The last search, an image after another. */
    async function pixels(stage, mine) {
      const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
      const canvas = step(stage.solved ? "The image" : "No image found this way", stage.image, [
        `searched from the tokens after block ${stage.block + 1}, in ${stage.path.length - 1} steps`,
        `${stage.decibels.toFixed(0)} dB`,
      ], stage.residuals);
      for (const image of still ? [] : stage.path) {
        if (!mine()) return stage;
        drawImage(canvas, bytesOf(image), config.image_size, config.channels);
        await new Promise((then) => setTimeout(then, FRAME));
      }
      return stage;
    }

    function conclude(last, block, others) {
      const where = `after block ${block + 1}`;
      const detour = !others.length ? "" : ` On the way, block ${others.join(", ")} was undone to tokens that are `
        + "not the image's, and the block gives the same for both: it is not one to one.";
      const more = detour && last.solved ? " The search over the pixels found the way back from there." : "";
      if (!last.solved) {
        verdict.textContent = `The search ended at an image whose tokens ${where} differ by ${power(last.whole)} `
          + `of their size: it is not the image.${detour}`;
      } else if (last.decibels >= 60) {
        verdict.textContent = `All ${config.image_size[0] * config.image_size[1]} pixels are back, from the tokens `
          + `${where} alone: none is off by more than ${power(last.largest)}. Nothing of the image was lost.${detour}${more}`;
      } else {
        verdict.textContent = `Another image with the same tokens ${where}: they differ by ${power(last.whole)}.${detour}`;
      }
    }

    return { element, show: () => { if (shown && model.answer != shown) forget(); } };
  };
}
