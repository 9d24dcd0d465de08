// Drawings of the chapters that answer: <div class="live-part" data-part="fold"> holds a still
// picture, whose place the part takes once the page has been painted and its reader is near.
(() => {
  "use strict";
  const HERE = document.currentScript.src;
  const TOOLS = ["../tools.js", "numbers.js", "drawing.js", "base.js"];

  let kit = null; // of all parts of the page
  const scripts = {};
  /** Loads a script of this site, once. */
  const load = (name) => (scripts[name] ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL(name, HERE).href;
    script.async = false; // in the order in which they are asked for
    script.onload = resolve;
    script.onerror = () => reject(new Error(`${name} could not be loaded.`));
    document.head.append(script);
  }));

  async function mount(root) {
    const name = root.dataset.part;
    await Promise.all([...TOOLS, `${name}.js`].map(load));
    const part = minivitParts[name];
    await Promise.all((part.needs ?? []).map(load));
    kit ??= { ...minivitKit(minivitTools()), load };
    const { element, show } = await part.mount(kit, root);
    const about = { class: `part part-${name}`, role: "group", "aria-label": part.title };
    const stage = kit.h("div", about, element);
    root.querySelector(".live-part-still")?.remove();
    const still = root.querySelector("img"), frame = still.closest("p, figure, picture") ?? still;
    frame.replaceWith(stage);
    show();
    new MutationObserver(show).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    root.dataset.ready = "";
  }

  function begin() {
    const near = new IntersectionObserver((entries) => entries.forEach(({ target, isIntersecting }) => {
      if (!isIntersecting) return;
      near.unobserve(target);
      mount(target).catch((error) => { // the still picture stays
        const said = document.createElement("p");
        said.setAttribute("role", "alert");
        said.textContent = `This drawing stands still: ${error.message}`;
        target.append(said);
      });
    }), { rootMargin: "400px" });
    document.querySelectorAll(".live-part").forEach((root) => near.observe(root));
  }
  requestAnimationFrame(() => setTimeout(begin)); // after the first paint
})();
