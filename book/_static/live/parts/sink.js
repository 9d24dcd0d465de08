// Chapter 24: what a query spends on five patches whose scores sink, and on what else there is.
(globalThis.minivitParts ??= {}).sink = (() => {
  "use strict";
  const OFFSETS = [0.6, -0.4, 0.1, -0.7, 0.4]; // scores of the patches, beside the slider's
  const KINDS = {
    softmax: "softmax", register: "with a register",
    plus: "1 in the denominator", sigmoid: "sigmoids",
  };

  /** Weights of the patches, of a register with score 0 if there is one, and what is not spent. */
  function spend(scores, kind) {
    if (kind == "sigmoid") {
      const patches = scores.map((s) => 1 / (1 + scores.length * Math.exp(-s)));
      return { patches, register: 0, unspent: 1 - patches.reduce((a, b) => a + b) };
    }
    const top = Math.max(0, ...scores), e = scores.map((s) => Math.exp(s - top));
    const rest = kind == "softmax" ? 0 : Math.exp(-top), sum = e.reduce((a, b) => a + b) + rest;
    const other = rest / sum;
    return {
      patches: e.map((v) => v / sum), register: kind == "register" ? other : 0,
      unspent: kind == "plus" ? other : 0,
    };
  }

  function mount({ h, handle, choice, bars, signed, speech }) {
    const say = speech();
    const names = [...OFFSETS.map((_, i) => `patch ${i + 1}`), "register", "unspent"];
    const weights = bars("Weights", names);
    const slider = handle({
      label: "Mean score", min: -6, max: 3, step: 0.25, value: -3,
      words: (v) => signed(v, 2),
    }, () => show());
    const kinds = choice("Weights are made by", KINDS, "softmax", () => show());
    function show() {
      const kind = kinds.value;
      const { patches, register, unspent } = spend(OFFSETS.map((o) => slider.value + o), kind);
      const values = [...patches, register, Math.max(0, unspent)];
      weights.show(values.map((v) => Math.min(1, v)), values.map((v) => v.toFixed(2)));
      const sum = patches.reduce((a, b) => a + b).toFixed(2);
      say.say({
        softmax: `With a mean score of ${signed(slider.value, 2)} the patches get ${sum} in all: softmax sees only how scores differ.`,
        register: `The patches get ${sum} in all, and the register ${register.toFixed(2)}.`,
        plus: `The patches get ${sum} in all; ${unspent.toFixed(2)} is not spent.`,
        sigmoid: `The patches get ${sum} in all, which need not be 1.`,
      }[kind]);
    }
    return { show, element: h("div", {}, slider.element, kinds.element, say.element, weights.element) };
  }
  return { title: "A query that finds nothing", compute: { spend }, mount };
})();
