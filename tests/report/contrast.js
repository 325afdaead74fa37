// Every piece of visible text whose contrast with what is behind it is below WCAG AA: [text, ratio].
const channel = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
const read = (colour) => colour.match(/[\d.]+/g).map(Number);
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };

function behind(element) {
  for (let node = element; node; node = node.parentElement) {
    const colour = read(getComputedStyle(node).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
}

const poor = [];
let texts = 0;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const element = node.parentElement, style = getComputedStyle(element);
  if (!node.textContent.trim() || !element.getClientRects().length || element.closest("script")) continue;
  texts += 1;
  const ink = read(element instanceof SVGElement ? style.fill : style.color);
  const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
  const contrast = ratio(ink, behind(element));
  if (contrast < (large ? 3 : 4.5)) poor.push([node.textContent.trim().slice(0, 40), contrast]);
}
return [texts, poor];
