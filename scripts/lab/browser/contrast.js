// The texts of the page with a contrast under 4.5, as WCAG 2.2 defines it (1.4.3). A
// color is what a canvas draws, so that every notation of CSS works; a translucent
// background is drawn over those behind it. Disabled buttons are exempt.
(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });

  const draw = (colors) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const color of colors) {
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
    }
    return [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };

  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((byte) => {
      const c = byte / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };

  // The color of a page without a background, in the scheme of the visitor.
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.backgroundColor = "Canvas";
  const bare = getComputedStyle(probe).backgroundColor;
  probe.remove();

  // The backgrounds behind an element, the farthest first.
  const backgrounds = (element) => {
    const all = [];
    for (let e = element; e; e = e.parentElement) all.unshift(getComputedStyle(e).backgroundColor);
    return [bare, ...all];
  };

  const contrast = (element) => {
    const { color } = getComputedStyle(element), behind = backgrounds(element);
    const [a, b] = [luminance(draw([...behind, color])), luminance(draw(behind))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };

  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode.data.trim();
    const element = texts.currentNode.parentElement;
    const shown = element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    if (!text || !shown || element.closest(":disabled, script, style")) continue;
    const ratio = contrast(element);
    if (ratio < 4.5) found.push(`contrast ${ratio.toFixed(2)} of ${JSON.stringify(text)} in ${element.outerHTML.slice(0, 200)}`);
  }
  return [...new Set(found)];
})()
