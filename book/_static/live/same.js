// The panel of two images with the same logits: a walk from one towards another, see level.js.
function minivitSame(tools, ledger) {
  "use strict";
  const { h, button, percent, power, best, softmax, drawImage } = tools;
  const SHADE = 1 / 255; // pixels that differ by less look the same on a screen
  const CLAIM = "R20"; // whether the same output means the same input

  return function same(model) {
    const { about: { config, classes }, samples, ask, switches, state } = model;
    const sizes = config.image_size, numbers = sizes[0] * sizes[1] * config.channels;
    const says = samples.map(({ logits }) => best(logits));
    const goal = h("select", { onchange: forget }, ...samples.map(({ name }, i) =>
      h("option", { value: i }, name.replace(/^A /, "a "))));
    const go = button("Walk", () => (walking ? stop() : start()));
    go.classList.add("live-go");
    const pair = h("ol", { class: "live-way live-pair" });
    const verdict = h("p", { class: "live-hint", "aria-live": "polite" });
    const element = h("section", { class: "live-search live-same", "aria-label": "Two images, one answer" },
      h("p", { class: "live-name" }, "Two images, one answer"),
      h("p", { class: "live-hint" }, `${numbers} pixels become ${classes.length} logits, so other images must have `
        + "the very same ones. Walk from this image towards another, and hold every logit where it is."),
      h("div", { class: "live-row" }, h("label", {}, "Towards ", goal), go), verdict, pair);
    let runs = 0, walking = false, first = null, last = null, seen = null;

    /** What was found belongs to another image, another goal, or other switches. */
    function forget() {
      runs++;
      first = last = null;
      pair.replaceChildren();
      verdict.textContent = "";
      rest();
    }
    function rest() {
      walking = false;
      go.textContent = "Walk";
    }
    /** What has been reached stays. */
    function stop() {
      runs++;
      rest();
      conclude("Stopped on the way. ");
    }

    async function start() {
      forget();
      const run = runs;
      walking = true;
      go.textContent = "Stop";
      verdict.textContent = "Walking …";
      try {
        const { pixels } = samples[goal.value];
        await ask({ ask: "same", bytes: state.bytes, switches: switches(), goal: pixels });
        let point, draw;
        while (run == runs && (point = await ask({ ask: "nearer" }))) {
          if (run != runs) return; // stopped meanwhile
          if (!first) figure("This image")(first = point);
          else (draw ??= figure("Another image"))(last = point);
        }
        if (run == runs) conclude();
      } catch (error) {
        if (run == runs) verdict.textContent = error.message;
      }
      if (run == runs) rest();
    }

    /** A picture with the model's answer under it; gives the function that draws a point there. */
    function figure(title) {
      const canvas = h("canvas", { role: "img", "aria-label": title });
      const answer = h("span"), moved = h("span");
      pair.append(h("li", {}, canvas, h("strong", {}, title), answer, moved));
      return ({ x, value, off }) => {
        drawImage(canvas, Uint8ClampedArray.from(x, (v) => 255 * v), sizes, config.channels);
        const chances = softmax([...value]), top = best(chances);
        answer.textContent = `The model says ${classes[top]} with ${percent(chances[top])}`;
        moved.textContent = first.x == x ? "" : `Logits differ by ${power(off)} at most`;
      };
    }

    function conclude(before = "") {
      if (!last) {
        verdict.textContent = `${before}No step towards that image was found that keeps the logits.`;
        return;
      }
      const changes = [...last.x].map((v, j) => Math.abs(v - first.x[j]));
      const mean = changes.reduce((a, b) => a + b) / numbers;
      verdict.replaceChildren(`${before}Both images give the same logits, to ${power(last.off)}: the model cannot `
        + `tell them apart, you can. ${changes.filter((d) => d > SHADE).length} of ${numbers} pixels differ, on average `
        + `by ${percent(mean)} of the way from black to white, one by ${percent(Math.max(...changes))}. Their tokens after `
        + `the last block differ by ${percent(last.tokens)}: from tokens the way back can find each image again, from `
        + "logits nothing can tell which of the two it was. ",
      h("a", { href: `${ledger}#${CLAIM}`, class: "live-claim", "aria-label": "What the same output says of the image: "
        + `the verdict on claim ${CLAIM}` }, CLAIM));
    }

    /** The first goal of another class than the answer's, unless the chosen one is. */
    function choose() {
      const top = best(model.answer.logits);
      if (says[goal.value] == top) goal.value = says.findIndex((one) => one != top);
    }

    function show() {
      if (!model.answer || model.answer == seen) return;
      seen = model.answer;
      forget();
      choose();
    }
    return { element, show };
  };
}
