// What a small model of digits says of ten of them, and where its heads look from a marked patch.
function minivitLook(kit, engine, sizes) {
  "use strict";
  const { side, across, blocks, heads } = sizes; // pixels and patches in a row
  const { h, range, percent, best, softmax, button, image, points, columns, drawImage } = kit, lit = minivitLit(kit);
  const test = kit.testDigits(), shown = range(10).map((digit) => test.labels.indexOf(digit)); // the first
  let chosen = shown[3], model = null;

  const answers = shown.map((i) => {
    const said = h("span", {}), canvas = h("canvas", { "aria-hidden": "true" });
    const made = button(drawImage(canvas, test.images[i], [side, side], 1), () => {
      chosen = i;
      show(model);
    });
    made.append(said);
    return { i, made, said };
  });
  const row = h("div", { class: "part-digits", role: "group", "aria-label": "Test digits" },
    ...answers.map(({ made }) => made));
  const picture = image("Mark a patch", "The chosen digit"), finger = [[0.6, 0.6]];
  const at = () => finger[0].map((p) => Math.min(across - 1, Math.floor(p * across))); // column, row
  const query = () => at()[1] * across + at()[0];
  const mark = points(picture.frame, finger, () => `Patch in ${lit.where(query(), [across, across])}`, () => show(model), 1 / across);
  const maps = lit.heads([blocks, heads]);
  const title = (words) => h("p", { class: "part-title" }, words);
  const element = h("div", {}, title("What it says of ten test digits: choose one"), row,
    h("div", { class: "part-look" },
    columns(picture.element, h("div", {}, title("Where its heads look from there"), maps.element))));

  function show(of) {
    model = of;
    for (const { i, made, said } of answers) {
      const chances = softmax([...engine.forward(model, engine.normalised(model, test.images[i])).logits]);
      const top = Math.max(...chances), unsure = top < 0.15, guess = best(chances);
      said.textContent = unsure ? "?" : guess;
      made.classList.toggle("is-wrong", !unsure && guess != test.labels[i]);
      made.setAttribute("aria-pressed", i == chosen);
      made.setAttribute("aria-label",
        `A ${test.labels[i]}: the model says ${unsure ? "nothing yet" : `${guess}, ${percent(top)}`}`);
    }
    picture.show(test.images[chosen], [side, side], 1);
    finger[0] = at().map((place) => (place + 0.5) / across); // the middle of the patch
    mark.show();
    const { attention } = engine.forward(model, engine.normalised(model, test.images[chosen]));
    const n = across * across;
    const weights = (b, head) => attention[b]?.slice((head * n + query()) * n, (head * n + query() + 1) * n);
    maps.show({ weights, picture: lit.pixels(test.images[chosen], [side, side], 1), grid: [across, across], grey: true });
  }
  return { element, show };
}
