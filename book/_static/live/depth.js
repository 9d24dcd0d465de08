// The panel of the blocks: every part and head to be switched off, and what is seen by then.
function minivitDepth(tools, ledger) {
  "use strict";
  const { h, range, percent, best } = tools, lit = minivitLit(tools);
  const CLAIMS = { // what a switch puts to the test
    attention: "R49", mlp: "R69", norm: "R48", residual: "R55", positions: "H10", head: "V12",
    rollout: "V33",
  };
  const WORDS = {
    attention: "Attention", mixing: "Mixing", mlp: "MLP", norm: "Norms", residual: "Residual",
  };

  /** Words, and after them a link to the verdict on a claim. */
  function linked(words, part) {
    const id = CLAIMS[part], label = `${words}: the verdict on claim ${id}`;
    const link = { href: `${ledger}#${id}`, class: "live-claim", "aria-label": label };
    return id ? [words, " ", h("a", link, id), " "] : [];
  }

  /** Block by block: switches, heads, rollout, and what the head would say by then. */
  return function depth(model) {
    const { about: { config, classes }, grid, places, state, columns } = model;
    const wants = (column) => columns.includes(column), updates = [];

    function newToggle(set, key, label, ...children) {
      const one = h("button", {
        type: "button", class: "live-switch", "aria-label": label, onclick: () => model.toggle(set, key),
      }, ...children);
      updates.push(() => one.setAttribute("aria-pressed", !state[set].has(key)));
      return one;
    }
    function newLens(i, words) {
      const value = h("span");
      updates.push(({ lens }) => {
        const said = best(lens[i]);
        value.replaceChildren(h("strong", {}, classes[said]), ` ${percent(lens[i][said])}`);
      });
      return h("p", { class: "live-lens" }, h("span", { class: "visually-hidden" }, `${words} the head would say `), value);
    }
    function newRollout(b) {
      const canvas = h("canvas", { class: "live-roll", role: "img", width: 96, height: 96, "aria-label": `Rollout after block ${b + 1}` });
      updates.push(({ rollout }) => lit.draw(canvas, model.picture(), rollout[b] ?? Array(places).fill(0), grid, config.channels == 1));
      return canvas;
    }

    const parts = Object.keys(WORDS).filter((part) => part != (config.heads ? "mixing" : "attention"));
    const heads = (b) => h("div", { class: "live-heads" }, ...range(config.heads ?? 0).map((head) =>
      newToggle("heads", `${b}/${head}`, `Head ${head + 1} of block ${b + 1}`, String(head + 1))));
    const block = (b) => h("div", { class: "live-block" },
      h("p", { class: "live-name" }, `Block ${b + 1}`),
      wants("switches") ? h("div", { class: "live-switches" }, ...parts.map((part) =>
        newToggle("removed", `${part}/${b}`, `${WORDS[part]} of block ${b + 1}`, WORDS[part]))) : null,
      wants("heads") ? heads(b) : null,
      wants("after") ? h("div", { class: "live-after" },
        config.heads ? newRollout(b) : null, newLens(b + 1, `After block ${b + 1}`)) : null,
      wants("lens") ? newLens(b + 1, `After block ${b + 1}`) : null);

    const looks = config.heads ? linked("Heads", "head") : [];
    const titles = h("div", { class: "live-block live-titles" },
      wants("switches") ? h("p", {}, "Tap a part to switch it off") : null,
      wants("switches") ? h("p", {}, ...parts.flatMap((part) => linked(WORDS[part], part))) : null,
      wants("heads") ? h("p", {}, ...looks) : null,
      wants("after") ? h("p", {}, ...(config.heads ? linked("Rollout", "rollout") : []), "and the answer, if the model ended here") : null,
      wants("lens") ? h("p", {}, "What the model would answer if it ended after each block") : null);
    const start = h("div", { class: "live-block" }, h("p", { class: "live-name" }, "Before the blocks"),
      wants("switches") ? h("div", { class: "live-switches" }, newToggle("removed", "positions", "Positions", "Positions"),
        ...linked("Positions", "positions").slice(1)) : null,
      newLens(0, "Before the blocks"));
    const early = ["switches", "lens"].some(wants) ? start : null;
    const element = h("div", { class: "live-depth" },
      ...[titles, early, ...range(config.depth).map(block)].filter(Boolean));
    return { element, show: () => model.answer && updates.forEach((update) => update(model.answer)) };
  };
}
