// Paper is white, and nothing opens on it: a page is printed as it looks by day, cards open.
const root = document.documentElement;
let onScreen = root.dataset.theme, closed = [];
addEventListener("beforeprint", () => {
  onScreen = root.dataset.theme;
  root.dataset.theme = "light";
  closed = [...document.querySelectorAll("details.verdict:not([open])")];
  closed.forEach((card) => (card.open = true));
});
addEventListener("afterprint", () => {
  root.dataset.theme = onScreen;
  closed.forEach((card) => (card.open = false));
});

// Images further down wait for the page, not for the reader, where one may want to print: a
// browser that prints does not always wait for them.
addEventListener("load", () => {
  if (innerWidth < 960) return;
  setTimeout(() => document.querySelectorAll("img[loading=lazy]:not(.thumb)").forEach((picture) => {
    picture.loading = "eager";
  }), 1500);
});

// The button under a figure copies its citation, and says that it has.
addEventListener("DOMContentLoaded", () => {
  if (!window.ClipboardJS) return;
  const said = ({ trigger }) => (trigger.textContent = "citation copied");
  new ClipboardJS(".take button").on("success", said);
});
