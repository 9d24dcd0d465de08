// A live model between two answers: its image, its switches, what is explained. The panels read it,
// and change it by its functions. `given` is what live.js knows of it.
function minivitModel(tools, given, page) {
  "use strict";
  const { h, range, percent, best, softmax } = tools, { about, samples, sharp, modes, ask } = given;
  const { show, say, busy } = page; // what the page does about it
  const SOON = 2000; // milliseconds, of a first answer, which takes several times as long as others
  const { config, preprocess, classes } = about, images = minivitImage(), lit = minivitLit(tools);
  const grid = [0, 1].map((i) => config.image_size[i] / config.patch_size[i]);
  const places = grid[0] * grid[1];

  /** The switches when nothing has been touched. */
  const nothing = () => ({
    removed: new Set(), // "attention/2" of a block, "positions" of the whole
    heads: new Set(), // "2/0": block and head
    covered: new Set(), // places
    order: range(places), // for each place the patch that is put there
    picked: null, // the first of two patches to swap
  });
  const state = {
    ...nothing(), bytes: null, sample: null, mode: modes[0], class: null, hovered: null,
    sharp: null, // the image with more pixels than the model sees, if there is one
    head: null, pointed: null, // "2/0": the head that lights the image, by a tap or under the pointer
    query: (grid[0] >> 1) * grid[1] + (grid[1] >> 1), // the patch whose attention is shown
  };
  /** The switches as the engine takes them. */
  const switches = () => ({
    removed: [...state.removed].map((key) => key.split("/"))
      .map(([part, block]) => [part, block ? [Number(block)] : null]),
    heads: [...state.heads].map((key) => key.split("/").map(Number)),
    order: state.order, covered: [...state.covered],
  });
  const model = {
    ...given, grid, places, state, nothing, switches, show,
    extra: config.pool == "class" ? 1 : 0, // tokens that are no patch
    answer: null, // the worker's, to the last question
    speaks: null, // by how much each logit falls without each patch
    done: 0, // patches that have been covered to find that out
    bytesOf, change, toggle, touched, take, choose, explain, hover, open, picture, weights, pick, point, words,
  };
  let changes = 0;

  function touched() {
    const sizes = [state.removed, state.heads, state.covered].map((set) => set.size);
    return sizes.some(Boolean) || state.order.some((from, to) => from != to);
  }

  async function change(values = {}) {
    Object.assign(state, values);
    Object.assign(model, { speaks: null, done: 0 });
    const then = ++changes, { sample, sharp, order, covered } = state;
    busy(true);
    show();
    try {
      const answer = await ask({
        ask: "run", bytes: state.bytes, switches: switches(), touched: touched(),
      });
      model.answer = { ...answer, sample, picture: pictured(answer.seen, sharp, order, [...covered]) };
      if (changes == then) {
        speak();
        busy(false);
      }
      show();
      if (changes == then && spoken() !== null) await weigh();
    } catch (error) {
      say(error.message);
      busy(false);
    }
  }

  /** What the model was shown, as a picture to draw: with more pixels where there are some. */
  function pictured(seen, sharp, order, covered) {
    const small = lit.pixels(bytesOf(seen), config.image_size, config.channels);
    if (!sharp) return small;
    const large = h("canvas", { width: sharp.width, height: sharp.height }), context = large.getContext("2d");
    const at = (place, { width, height }) => [place % grid[1] * width / grid[1], Math.floor(place / grid[1]) * height / grid[0], width / grid[1], height / grid[0]];
    order.forEach((from, to) => context.drawImage(sharp, ...at(from, sharp), ...at(to, large)));
    for (const place of covered) context.drawImage(small, ...at(place, small), ...at(place, large));
    return large;
  }
  function picture() {
    return model.answer.picture;
  }

  /** What a head takes from each patch for the ringed one; nothing if its block has no attention. */
  function weights(b, head) {
    const n = places + model.extra, from = (head * n + state.query + model.extra) * n + model.extra;
    return model.answer.attention[b]?.subarray(from, from + places);
  }
  function pick(b, head) {
    const key = `${b}/${head}`;
    Object.assign(state, { head: state.head == key ? null : key, pointed: null });
    show();
  }
  function point(b, head) {
    state.pointed = b === undefined ? null : `${b}/${head}`;
    show();
  }

  /** What is switched off, covered or moved, in words. */
  function words() {
    const parts = [...state.removed].map((key) => key.split("/")).map(([part, b]) => (b ? `${part} of block ${+b + 1}` : part));
    const heads = [...state.heads].map((key) => key.split("/")).map(([b, head]) => `head ${+head + 1} of block ${+b + 1}`);
    const moved = state.order.filter((from, to) => from != to).length, covered = state.covered.size;
    return [...[...parts, ...heads].map((one) => `without ${one}`), covered && `${covered} covered`, moved && `${moved} patches moved`]
      .filter(Boolean);
  }

  /** What speaks for each class, some patches at a time, so that a change need not wait. */
  async function weigh() {
    const then = changes, rows = [];
    while (rows.length < places) {
      const some = range(Math.min(8, places - rows.length)).map((i) => rows.length + i);
      rows.push(...await ask({ ask: "deletion", bytes: state.bytes, switches: switches(), places: some }));
      if (changes != then) return;
      model.done = rows.length;
      show();
    }
    model.speaks = rows;
    show();
  }

  /** The class that is explained. */
  const spoken = () => state.hovered ?? state.class;

  function explain(c) {
    Object.assign(state, { class: state.class == c ? null : c, hovered: null });
    show();
    if (state.class !== null && !model.speaks && !model.done) weigh();
  }

  /** The same for as long as the pointer is there, if it is known or soon will be. */
  function hover(c) {
    if (c !== null && !model.speaks && !(model.answer?.milliseconds * places < SOON)) return;
    state.hovered = c;
    show();
    if (c !== null && !model.speaks && !model.done) weigh();
  }

  /** From the model's input to bytes. */
  function bytesOf(seen) {
    const { mean, std } = preprocess;
    return Uint8ClampedArray.from(seen, (v, i) => 255 * (v * std[i % mean.length] + mean[i % mean.length]));
  }

  function toggle(set, key) {
    if (!state[set].delete(key)) state[set].add(key);
    change();
  }

  /** Takes another image; parts that are gone stay so, unless `values` say otherwise. */
  function take(bytes, sample = null, larger = null, values = {}) {
    return change({ bytes, sample, sharp: larger, covered: new Set(), order: range(places), picked: null, ...values });
  }
  function choose(i, values = {}) {
    return take(Uint8Array.from(samples[i].pixels), i, sharp[i], values);
  }

  async function open(file) {
    if (!file) return;
    const then = changes;
    busy(true);
    say("The image is being read …");
    try {
      const bytes = await images.fromFile(file, preprocess);
      if (changes != then) return; // the reader has chosen something else by now
      if (config.channels == 3) {
        const larger = lit.cut(await createImageBitmap(file), config.image_size);
        return changes == then ? await take(bytes, null, larger) : null;
      }
      await take(images.isOnPaper(bytes, config.image_size[1]) ? bytes.map((v) => 255 - v) : bytes);
    } catch (error) {
      if (changes != then) return;
      say(error.message);
      busy(false);
    }
  }

  function speak() {
    if (images.isBlank(state.bytes)) return say("Nothing is drawn.");
    const now = softmax([...model.answer.logits]), before = softmax([...model.answer.before]);
    const top = best(now), was = best(before);
    const instead = !touched() ? "" : top == was
      ? ` With everything in place it says so with ${percent(before[was])}.`
      : ` With everything in place it says ${classes[was]} (${percent(before[was])}).`;
    say("The model says ", h("strong", {}, classes[top]), ` with ${percent(now[top])}.${instead}`);
  }
  return model;
}
