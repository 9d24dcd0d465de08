// The small panels of a live model: classes, images to choose from, PyTorch's logits. All panels take
// the model (see live.js) and give an element, and `show`, which draws it anew after every change.
function minivitPanels(tools) {
  "use strict";
  const { h, percent, best, softmax, drawImage } = tools;

  /** A bar for each class; a mark says where it was with everything in place. */
  function classes(model) {
    const { about, state } = model, hint = h("p", { class: "live-hint" });
    const rows = about.classes.map((label, c) => {
      const bar = h("span", { class: "live-bar" }), mark = h("span", { class: "live-mark" });
      const value = h("span", { class: "live-value" });
      const row = h("button", {
        type: "button", class: "live-class", onclick: () => model.explain(c),
        onpointerenter: ({ pointerType }) => pointerType == "mouse" && model.hover(c),
        onpointerleave: ({ pointerType }) => pointerType == "mouse" && model.hover(null),
      },
        h("span", { class: "live-label" }, label), h("span", { class: "live-track" }, bar, mark), value);
      return { row, bar, mark, value };
    });

    function show() {
      const spoken = state.hovered ?? state.class, label = about.classes[spoken];
      hint.textContent = spoken === null ? "Point at a class, or tap it, to see which patches speak for it."
        + (model.touched() ? " An upright mark: with everything in place." : "")
        : model.speaks ? `Green patches speak for ${label}, red ones against: each was covered, and `
          + "the logit measured again."
        : `Covering one patch after another: ${model.done} of ${model.places} …`;
      if (!model.answer) return;
      const before = softmax([...model.answer.before]), now = softmax([...model.answer.logits]);
      rows.forEach(({ row, bar, mark, value }, c) => {
        bar.style.width = `${100 * now[c]}%`;
        mark.style.left = `${100 * before[c]}%`;
        mark.hidden = !model.touched();
        value.textContent = percent(now[c]);
        row.classList.toggle("is-best", c == best(now));
        row.setAttribute("aria-pressed", c == state.class);
      });
    }
    const group = h("div", { class: "live-classes", role: "group", "aria-label": "Classes" },
      ...rows.map(({ row }) => row));
    return { show, element: h("div", {}, group, hint) };
  }

  /** Images to choose from, and a reader's own. */
  function samples(model) {
    const { about: { config }, state } = model;
    const strip = h("div", {
      class: "live-samples", role: "group", "aria-label": "Images that the model was not trained on",
    }, ...model.samples.map((sample, i) => h("button", {
      type: "button", "aria-label": sample.name, title: sample.name, onclick: () => model.choose(i),
    }, drawImage(h("canvas", { "aria-hidden": "true" }), sample.pixels, config.image_size, config.channels))));
    const file = h("input", { type: "file", accept: "image/*", onchange: async () => {
      await model.open(file.files[0]);
      file.value = ""; // so that the same file can be chosen again
    } });
    const own = h("label", { class: "live-button live-file" }, file, "Your own image, which stays here");
    const show = () =>
      [...strip.children].forEach((one, i) => one.setAttribute("aria-pressed", i == state.sample));
    return { show, element: h("div", { class: "live-row" }, strip, own) };
  }

  /** The page's logits of a sample, and PyTorch's. */
  function truth(model) {
    const { about } = model, sum = h("p"), body = h("tbody");
    const heads = ["class", "this page", "PyTorch", "difference"].map((t) => h("th", { scope: "col" }, t));
    const element = h("details", { class: "live-truth" }, h("summary", {}, "The same image in PyTorch"),
      sum, h("table", {}, h("thead", {}, h("tr", {}, ...heads)), body));

    function show() {
      const { before, milliseconds, sample } = model.answer ?? { sample: null };
      element.hidden = sample === null;
      if (sample === null) return;
      const { logits } = model.samples[sample];
      const off = logits.map((v, c) => Math.abs(v - before[c]));
      sum.textContent = "Logits of this image with everything in place. Largest difference: "
        + `${Math.max(...off).toExponential(1)}. This page took ${milliseconds.toFixed(1)} ms.`;
      body.replaceChildren(...about.classes.map((label, c) => h("tr", {},
        h("th", { scope: "row" }, label), h("td", {}, before[c].toFixed(5)),
        h("td", {}, logits[c].toFixed(5)), h("td", {}, off[c].toExponential(1)))));
    }
    return { element, show };
  }

  return { classes, samples, truth };
}
