// The panels of heads: all of them lit, one in numbers, and two states side by side.
function minivitHeads(tools) {
  "use strict";
  const { h, range, button, percent, best, softmax, drawMap } = tools, lit = minivitLit(tools);
  const ROWS = 5, TERMS = 3; // patches in the table of a head, products that are written out

  /** What `lit.heads` draws of a state. */
  const drawn = (model) => ({
    weights: model.weights, picture: model.picture(), grid: model.grid, grey: model.about.config.channels == 1,
    chosen: model.state.head, off: model.state.heads,
  });
  const named = (key) => key.split("/").map((i) => +i + 1); // block and head, counted from 1

  /** The image, lit where each head looks from the ringed patch. */
  function maps(model) {
    const { config } = model.about;
    const heads = lit.heads([config.depth, config.heads], model.pick, model.point);
    return { element: h("div", { class: "live-maps" }, heads.element), show: () => model.answer && heads.show(drawn(model)) };
  }

  /** One head from query to output, for the ringed patch: products, scores, weights, their sum of values. */
  function opened(model) {
    const { ask, state, grid, extra, about: { config } } = model, width = config.dim / config.heads;
    const title = h("p", { class: "live-name" }), spelled = h("p", { class: "live-spelled" }), body = h("tbody"), foot = h("tfoot");
    const turn = button("", () => model.toggle("heads", state.head)), close = button("Close", () => model.pick(...state.head.split("/")));
    const columns = ["patch j", "q · k", `÷ √${width}`, "softmax", "value v of j, times its weight"];
    const element = h("section", { class: "live-opened", "aria-label": "One head in numbers" },
      h("div", { class: "live-row" }, title, turn, close),
      h("div", { class: "live-scroll", tabindex: 0, role: "group", "aria-label": "The head's table" }, h("table", {},
        h("thead", {}, h("tr", {}, ...columns.map((words) => h("th", { scope: "col" }, words)))), body, foot)), spelled);
    let asked = 0, last = null, row = 0;

    const digits = (v) => v.toFixed(2).replace(/^-(0\.00)$/, "$1").replace("-", "\u2212");
    const large = (v) => (v < 100 ? v.toPrecision(3) : Math.round(v).toLocaleString("en"));
    const nameOf = (token) => (token < extra ? "class token" : lit.where(token - extra, grid));
    /** Numbers as a strip of shades, and the first of them. */
    const strip = (values, most) => h("td", { class: "live-strip" },
      drawMap(h("canvas", { "aria-hidden": "true" }), values, [1, values.length], true, most),
      h("span", {}, `${values.slice(0, TERMS).map(digits).join(", ")}, …`));

    async function show() {
      element.hidden = state.head === null || !model.answer;
      if (element.hidden) return void (last = null);
      const [block, head] = state.head.split("/").map(Number), token = state.query + extra;
      const key = `${state.head} ${token}`;
      title.textContent = `Block ${block + 1}, head ${head + 1}, from ${nameOf(token)}`;
      turn.textContent = state.heads.has(state.head) ? "Switch this head on" : "Switch this head off";
      if (last?.key == key && last.answer == model.answer) return;
      const mine = ++asked, answer = model.answer;
      const found = await ask({ ask: "head", bytes: state.bytes, switches: model.switches(), block, head, token }).catch(() => null);
      if (mine != asked || state.head === null) return;
      [last, row] = [{ key, answer }, 0];
      fill(found);
    }

    function fill(found) {
      body.replaceChildren();
      foot.replaceChildren();
      spelled.textContent = found ? "" : "This block's attention has been switched off.";
      if (!found) return;
      const { query, values } = found, keys = found.keys.map((k) => [...k]);
      const products = keys.map((k) => k.reduce((sum, v, i) => sum + v * query[i], 0));
      const scores = products.map((p) => p / Math.sqrt(width)), weights = softmax(scores);
      const order = range(keys.length).sort((i, j) => weights[j] - weights[i]), top = order.slice(0, ROWS);
      const sum = range(width).map((i) => weights.reduce((all, w, j) => all + w * values[j][i], 0));
      const added = (j) => [...values[j]].map((v) => v * weights[j]), most = Math.max(...sum.map(Math.abs), ...top.flatMap(added).map(Math.abs));
      const rest = order.slice(ROWS), left = range(width).map((i) => rest.reduce((all, j) => all + weights[j] * values[j][i], 0));
      const buttons = top.map((j, i) => button(nameOf(j), () => { row = i; spell(); }));
      top.forEach((j, i) => body.append(h("tr", {}, h("th", { scope: "row" }, buttons[i]),
        ...[digits(products[j]), digits(scores[j]), percent(weights[j])].map((text) => h("td", {}, text)), strip(added(j), most))));
      const total = rest.reduce((all, j) => all + weights[j], 0);
      if (rest.length) body.append(h("tr", {}, h("th", { scope: "row" }, `${rest.length} others`), h("td"), h("td"), h("td", {}, percent(total)), strip(left, most)));
      foot.append(h("tr", {}, h("th", { scope: "row" }, "sum: what the head gives"), h("td"), h("td"), h("td", {}, percent(1)), strip(sum, most)));

      function spell() {
        const j = top[row], terms = range(TERMS).map((i) => `${digits(query[i])} × ${digits(keys[j][i])}`).join(" + ");
        const all = scores.reduce((one, s) => one + Math.exp(s), 0);
        buttons.forEach((one, i) => one.setAttribute("aria-pressed", i == row));
        spelled.textContent = `${nameOf(j)}: q · k = ${terms} + … (${width} products) = ${digits(products[j])}; divided by √${width}, ${digits(scores[j])}; `
          + `softmax: e to this power is ${large(Math.exp(scores[j]))}, of ${large(all)} for all ${keys.length}: ${percent(weights[j])}.`;
      }
      spell();
    }
    return { element, show };
  }

  /** A state that is kept, beside the present one. */
  function pair(model) {
    const { about: { config, classes }, grid, state } = model;
    const cards = h("div", { class: "live-cards" }), before = h("div", { class: "live-card" }), now = h("div", { class: "live-card" });
    const keep = button("Keep this state to compare", () => {
      kept = true;
      card(before, "Kept");
      show();
    });
    const forget = button("Forget it", () => { kept = false; show(); });
    let kept = false;

    function card(element, title) {
      const chances = softmax([...model.answer.logits]), top = best(chances), words = model.words();
      const large = h("canvas", { class: "live-photo", width: 224, height: 224, role: "img", "aria-label": `${title}: the image` });
      const [b, head] = (state.head ?? "").split("/");
      lit.draw(large, model.picture(), b ? model.weights(b, head) : null, grid, config.channels == 1);
      const heads = config.heads ? lit.heads([config.depth, config.heads]) : null;
      heads?.show(drawn(model));
      heads?.element.setAttribute("aria-hidden", "true"); // the words below tell them
      const what = [state.head && `lit by head ${named(state.head)[1]} of block ${named(state.head)[0]}`, ...words].filter(Boolean);
      element.replaceChildren(h("p", {}, h("strong", {}, title), `: ${classes[top]}, ${percent(chances[top])}`),
        h("div", { class: "live-two" }, large, heads?.element ?? ""), h("p", { class: "live-hint" }, what.join("; ") || "everything in place"));
    }
    function show() {
      cards.hidden = forget.hidden = !kept;
      if (kept && model.answer) card(now, "Now");
    }
    cards.append(before, now);
    return { element: h("section", { class: "live-pairs", "aria-label": "Two states" }, h("div", { class: "live-row" }, keep, forget), cards), show };
  }

  return { maps, opened, pair };
}
