// A guided walk: each step sets the model's state, by an address as readers and teachers have them,
// and points at what to look at.
function minivitGuide(tools, go) {
  "use strict";
  const { h, button } = tools;
  const WALKS = {
    cifar10_vit: [
      ["image=1&patch=4.4", ".lit-heads", "Every small picture is one attention head, lit where it looks from the ringed patch. Drag the ring, and see which follow it."],
      ["image=1&patch=4.4&head=3.2", ".live-frame", "This head of block 3 puts nearly all of its weight on one patch. Its light lies over the image: tap any head for that."],
      ["image=1&patch=4.4&head=3.2", ".live-opened", "The same head in numbers: the query of the ringed patch times the key of each other patch, softmax of these, and the values that they let through."],
      ["image=1&patch=8.1&head=1.2", ".live-frame", "Head 2 of block 1: wherever you move the ring, its light changes little. Then tap head 1 of block 4, whose light changes most of all."],
      ["image=1&covered=3.3,3.4,4.3,4.4,3.6,3.7,4.6,4.7", ".live-classes", "Cover the eyes. The bars are the model's answer now, upright marks its answer before."],
      ["image=1&without=attention.1,attention.2,attention.3,attention.4,attention.5,attention.6", ".live-classes", "All attention switched off: no patch hears of another. The residual connections still carry each to the end."],
      ["image=1&without=mlp.1,mlp.2,mlp.3,mlp.4,mlp.5,mlp.6", ".live-classes", "Attention again, but no MLP. Which of the two did this image need more? Keep one state, and compare it with the other."],
      ["image=3&patch=2.4", ".live-classes", "An astronaut, for a model that knows ten classes, none of them a person. It answers all the same."],
    ],
    digits_vit: [
      ["image=1", ".lit-heads", "16 patches, 16 heads: each is lit where it looks from the ringed patch. Move the ring: in which blocks does nothing change?"],
      ["image=1&order=16,3,9,1,12,7,5,14,2,10,15,4,13,8,6,11", ".live-classes", "The same patches in another order. The model knows where each one is, and takes the image for something else."],
      ["image=1&without=positions", ".live-classes", "In order again, but without positions. Shuffle now, by the button below the image: this answer cannot change."],
      ["image=1&without=attention.1,attention.2,attention.3,attention.4", ".live-classes", "Without any attention. What is left is each patch by itself, and the mean of all at the end."],
      ["image=1&without=mlp.1,mlp.2,mlp.3,mlp.4", ".live-classes", "Without any MLP instead. Which does the digit need more?"],
      ["image=11", ".live-classes", "A digit that the model misreads. Tap the right class: green patches speak for it, red ones against. Cover a red one."],
      ["image=1", ".live-back", "Press Go back. From the tokens after the last block every pixel returns, to about 14 decimal places."],
      ["image=1", ".live-same", "Press Walk. Another image, with all ten logits the same: the model's answer cannot tell the two apart."],
    ],
  };

  return function guide(model, root) {
    const steps = WALKS[model.name] ?? [];
    let at = -1;
    const text = h("p", { "aria-live": "polite" });
    const begin = button(`Show me around, in ${steps.length} steps`, () => to(0)), end = button("End", () => to(-1));
    const back = button("Back", () => to(at - 1)), next = button("Next", () => to(at + 1));
    const told = h("section", { class: "live-told", "aria-label": "A guided walk" }, text, h("div", { class: "live-row" }, back, next, end));

    async function to(step) {
      at = step < steps.length ? step : -1;
      root.querySelector(".is-pointed")?.classList.remove("is-pointed");
      [begin.hidden, told.hidden, back.disabled] = [at >= 0, at < 0, at == 0];
      next.textContent = at == steps.length - 1 ? "Done" : "Next";
      if (at < 0) return;
      const [query, where, words] = steps[at];
      text.replaceChildren(h("strong", {}, `${at + 1} of ${steps.length}. `), words);
      await go(query);
      const pointed = root.querySelector(where);
      pointed?.classList.add("is-pointed");
      pointed?.scrollIntoView({ block: "nearest" });
    }
    to(-1);
    return steps.length ? { begin, told } : null;
  };
}
