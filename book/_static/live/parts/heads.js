// Where every head of a ViT looks from one patch, in chapter 9 and on the front page. What the first
// photograph needs is stored, and the model is loaded for all else.
(globalThis.minivitParts ??= {}).heads = (() => {
  "use strict";
  const MODEL = "cifar10_vit";
  const SIDE = 32, ACROSS = 8, GRID = [ACROSS, ACROSS], PLACES = ACROSS * ACROSS, BLOCKS = 6, HEADS = 4;
  const PICTURES = { chelsea: "A cat", rocket: "A rocket", astronaut: "An astronaut", coffee: "A cup" };

  /** Mean distance, in pixels, of what a head looks at; weights [n * n], of a square grid. */
  function distance(weights, across, patch) {
    const n = across * across;
    let total = 0;
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) {
      const down = Math.floor(i / across) - Math.floor(j / across);
      const right = (i % across) - (j % across);
      total += (weights[i * n + j] * patch * Math.hypot(down, right)) / n;
    }
    return total;
  }

  /** Stored weights: a byte each, 255 times its root. */
  const unpacked = (text) => Float64Array.from(atob(text), (letter) => (letter.charCodeAt(0) / 255) ** 2);

  async function mount(kit, root) {
    const { h, button, panel, points, row, speech, best, softmax, percent, load, ownPhoto, base } = kit;
    const lit = minivitLit(kit), isStored = "stored" in root.dataset;
    const say = speech(), off = new Set(), finger = [[3.5 / ACROSS, 3.5 / ACROSS]];
    const address = (file) => new URL(`../photographs/${file}.webp`, base).href;
    let model = null, sample = { name: "chelsea" }, picture = null, found = null, chosen = null, pointed = null, asked = 0;

    const at = () => finger[0].map((p) => Math.min(ACROSS - 1, Math.floor(p * ACROSS))); // column, row
    const query = () => at()[1] * ACROSS + at()[0];
    const photo = panel("", "The photograph");
    photo.heading.remove();
    Object.assign(photo.canvas, { width: 448, height: 448 });
    photo.frame.classList.add("lit-photo");
    const ring = points(photo.frame, finger, () => `Ring on ${lit.where(query(), GRID)}`, () => touch(), 1 / ACROSS);
    const choose = (b, head) => {
      chosen = chosen == `${b}/${head}` ? null : `${b}/${head}`;
      touch();
    };
    const heads = lit.heads([BLOCKS, HEADS], choose, (b, head) => {
      pointed = head === undefined ? null : `${b}/${head}`;
      touch();
    });
    const whole = button("Whole photograph", () => { chosen = null; touch(); });
    const turn = button("Switch this head off", () => {
      if (!off.delete(chosen)) off.add(chosen);
      look();
    });
    const all = button("All heads on", () => { off.clear(); look(); });
    const inNumbers = h("a", {}, "This head in numbers"), names = Object.keys(PICTURES);
    const controls = row(whole, turn, all, inNumbers);
    const others = row(...Object.entries(PICTURES).map(([name, words]) => {
      const one = button(words, () => take({ name }));
      one.dataset.name = name;
      return one;
    }), ownPhoto(SIDE, "Your own", (pixels, file) => take({ pixels, file }), (words) => say.say(words)));

    async function take(one) {
      const mine = ++asked;
      const opened = one.file ? await createImageBitmap(one.file) : await lit.fetched(address(one.name));
      if (mine != asked) return; // another has been chosen by now
      [sample, picture] = [one, lit.cut(opened, GRID)];
      await look();
    }

    /** Reads the stored maps, or asks the model. */
    async function look() {
      const mine = ++asked;
      if (sample.name == "chelsea" && !off.size) {
        await load("seen.js");
        found = { ...minivitSeen, attention: unpacked(minivitSeen.attention) };
      } else {
        if (!model) say.say("The model is being loaded, 1.9 MB …");
        photo.frame.setAttribute("aria-busy", "true");
        await Promise.all(["../engine.js", `../models/${MODEL}.js`].map(load));
        const engine = minivitEngine();
        model ??= engine.open(minivitModels[MODEL]);
        photo.frame.setAttribute("aria-busy", "false");
        if (mine != asked) return;
        const pixels = sample.pixels ?? minivitSamples[MODEL].find(({ file }) => file == sample.name).pixels;
        const switches = { heads: [...off].map((key) => key.split("/").map(Number)) };
        const { attention, logits } = engine.forward(model, engine.normalised(model, pixels), switches);
        const chances = softmax([...logits]), top = best(chances);
        found = { attention: attention.flatMap((weights) => [...weights]), says: model.classes[top], chance: chances[top] };
      }
      if (mine != asked) return;
      if (!isStored) heads.cells.forEach(({ b, head, cell }) => {
        const all = found.attention.slice(of(b, head), of(b, head) + PLACES * PLACES);
        const uniform = distance(new Float64Array(PLACES * PLACES).fill(1 / PLACES), ACROSS, 1);
        cell.dataset.far = (distance(all, ACROSS, 1) / uniform).toFixed(2);
      });
      show();
    }

    /** Each head's weights, as far as they are known. */
    const of = (b, head) => (b * HEADS + head) * PLACES * PLACES;
    const weights = (b, head) => found.attention.slice(of(b, head) + query() * PLACES, of(b, head) + (query() + 1) * PLACES);
    const told = (b, head) => {
      const seen = weights(b, head), top = best([...seen]);
      return { b, head, most: seen[top], words: `${Math.round(100 * seen[top])} % on ${lit.where(top, GRID)}` };
    };

    const touch = () => (found ? show() : look().catch((error) => say.say(error.message)));
    function show() {
      finger[0] = at().map((place) => (place + 0.5) / ACROSS); // the middle of the patch
      ring.show();
      const key = pointed ?? chosen, which = key?.split("/").map(Number);
      for (const one of others.querySelectorAll("[data-name]")) one.setAttribute("aria-pressed", one.dataset.name == sample.name);
      [whole.hidden, turn.hidden, all.hidden] = [!chosen, !chosen, !off.size];
      inNumbers.hidden = !chosen || !names.includes(sample.name);
      inNumbers.href = new URL(`../../../book/live.html?model=${MODEL}&image=${names.indexOf(sample.name) + 1}&patch=${at()[1] + 1}.${at()[0] + 1}`
        + `&head=${(chosen ?? "0/0").split("/").map((i) => +i + 1).join(".")}`, base).href;
      turn.textContent = off.has(chosen) ? "Switch this head on" : "Switch this head off";
      if (!found) {
        lit.draw(photo.canvas, picture, null, GRID);
        return;
      }
      lit.draw(photo.canvas, picture, which ? weights(...which) : null, GRID);
      heads.show({ weights, picture, grid: GRID, chosen, off });
      const first = heads.cells.map(({ b, head }) => told(b, head)).sort((one, other) => other.most - one.most)[0];
      const { b, head, words } = which ? told(...which) : first;
      const answer = `The model sees ${SIDE} × ${SIDE} pixels and says ${found.says}, ${percent(found.chance)}.`;
      say.say(`${which ? "Block" : "Most decided: block"} ${b + 1}, head ${head + 1}, ${words}. ${answer}`);
    }

    picture = lit.cut(await lit.fetched(address("chelsea")), GRID);
    if (!isStored) await look();
    else { // the stored sheet of heads, until somebody touches
      const sheet = await lit.fetched(address("chelsea-heads")), side = sheet.naturalWidth / HEADS;
      heads.cells.forEach(({ b, head, canvas }) =>
        canvas.getContext("2d").drawImage(sheet, head * side, b * side, side, side, 0, 0, canvas.width, canvas.height));
      say.say(root.querySelector("figcaption").textContent);
    }
    const side = h("div", { class: "lit-side" }, photo.element, say.element, controls, others);
    return { show, element: h("div", { class: "lit-stage" }, side, heads.element) };
  }
  return { title: "Where every head looks from one patch", needs: ["../lit.js"], compute: { distance }, mount };
})();
