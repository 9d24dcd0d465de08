// Chapter 1: a picture cut into patches of any size that divides it: tokens, and what they cost.
(globalThis.minivitParts ??= {}).patches = (() => {
  "use strict";
  const SIDE = 224;
  const SIZES = [1, 2, 4, 7, 8, 14, 16, 28, 32, 56, 112, 224];
  const DIM = 768, DEPTH = 12, CLASSES = 1000; // of ViT-B

  /** Multiply-adds of a ViT-B on one image, in all and by part. */
  function cost(patch, side = SIDE) {
    const patches = (side / patch) ** 2, tokens = patches + 1; // the class token is one more
    const parts = {
      embedding: patches * 3 * patch ** 2 * DIM,
      projections: DEPTH * 4 * tokens * DIM ** 2,
      mlps: DEPTH * 8 * tokens * DIM ** 2,
      squares: DEPTH * 2 * tokens ** 2 * DIM,
    };
    const total = Object.values(parts).reduce((a, b) => a + b) + DIM * CLASSES;
    return { tokens, total, parts };
  }

  const PARTS = ["patch embedding", "projections", "MLPs", "scores and averages"];

  async function mount(kit) {
    const { h, range, percent, handle, panel, points, bars, columns, row, fold, speech, opened, ownPhoto } = kit;
    const size = handle({ label: "Side of a patch", min: 0, max: SIZES.length - 1, value: 6,
      words: (i) => `${SIZES[i]} px` }, () => show());
    const say = speech();
    const cut = panel("The picture, cut", "A picture cut into patches");
    const one = panel("", "One patch, enlarged", [120, 120]);
    one.element.classList.add("part-small");
    const source = h("canvas");
    const finger = [[0.47, 0.32]];
    points(cut.frame, finger, () => {
      const [column, line] = at();
      return `Patch in row ${line + 1}, column ${column + 1}`;
    }, () => show(), 1 / 28);
    function at() {
      const count = SIDE / SIZES[size.value];
      return finger[0].map((p) => Math.min(count - 1, Math.floor(p * count)));
    }
    const shares = bars("Where they go", PARTS), price = h("p");
    const take = (photo) => kit.drawImage(source, photo, [SIDE, SIDE], 3);
    take(await opened(minivitPhotographs.astronaut, SIDE));

    function show() {
      const patch = SIZES[size.value], count = SIDE / patch, { tokens, total, parts } = cost(patch);
      const [column, line] = at();
      cut.draw((context, colour) => {
        const gap = patch > 8 ? 3 : patch > 2 ? 1 : 0, cell = cut.width / count;
        context.imageSmoothingEnabled = false;
        for (const y of range(count)) for (const x of range(count)) {
          if (gap == 0 && x) break; // rows at once: there are too many cells to see gaps
          const wide = gap ? patch : SIDE;
          context.drawImage(source, x * patch, y * patch, wide, patch,
            x * cell, y * cell, (gap ? cell : cut.width) - gap, cell - gap + (gap ? 0 : 0.5));
        }
        context.strokeStyle = colour.second;
        context.lineWidth = 3;
        const side = Math.max(cell, 4); // one that is seen
        context.strokeRect(column * cell - 1, line * cell - 1, side, side);
      });
      one.heading.textContent = `The marked patch: ${(3 * patch ** 2).toLocaleString("en")} numbers`;
      one.draw((context) => {
        context.imageSmoothingEnabled = false;
        const [x, y] = [column * patch, line * patch];
        context.drawImage(source, x, y, patch, patch, 0, 0, one.width, one.height);
      });
      const found = Object.values(parts).map((v) => v / total);
      shares.show(found, found.map(percent));
      const digits = { maximumFractionDigits: total < 1e11 ? 1 : 0 };
      price.textContent = `A ViT-B takes ${(total / 1e9).toLocaleString("en", digits)} billion multiply-adds `
        + `for ${tokens.toLocaleString("en")} tokens: one is for the class.`;
      say.say(`Patches, and so tokens: ${count} × ${count} = ${(tokens - 1).toLocaleString("en")}.`);
    }
    const own = ownPhoto(SIDE, "Your own picture, which stays here", (photo) => {
      take(photo);
      show();
    }, say.say);
    const both = columns(cut.element, h("div", {}, one.element, fold("What it costs", price, shares.element)));
    return { show, element: h("div", {}, row(size.element, own), say.element, both) };
  }
  return { title: "A picture cut into patches", needs: ["photographs.js"], compute: { cost }, mount };
})();
