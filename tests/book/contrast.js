// Equations and drawings (axe sees neither): what stands out less than 4.5 : 1 from what it is on.
() => {
  const rgba = (css) => {
    const found = css.match(/rgba?\(([^)]+)\)/);
    if (!found) return null;
    const [r, g, b, alpha = 1] = found[1].split(/[ ,/]+/).map(Number);
    return [r, g, b, alpha];
  };
  const luminance = (color) => {
    const [r, g, b] = color.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const behind = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const color = rgba(getComputedStyle(e).backgroundColor);
      if (color?.[3]) layers.unshift(color);
    }
    return layers.reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const shapes = (svg, text, ground) => {
    const box = text.getBBox();
    const center = new DOMPoint(box.x + box.width / 2, box.y + box.height / 2);
    for (const shape of svg.querySelectorAll("rect, circle, ellipse, polygon, path")) {
      const style = getComputedStyle(shape), fill = rgba(style.fill);
      const later = shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_PRECEDING;
      if (later || !fill || shape.closest("defs")) continue;
      const to = shape.getScreenCTM().inverse().multiply(text.getScreenCTM());
      if (!shape.isPointInFill(center.matrixTransform(to))) continue;
      fill[3] *= style.fillOpacity * style.opacity;
      ground = over(fill, ground);
    }
    return ground;
  };
  const faint = [];
  const look = (element, color, ground) => {
    const ratio = contrast(over(color, ground), ground);
    if (!(ratio >= 4.5)) faint.push(`${element.textContent.slice(0, 40)} ${ratio.toFixed(2)}`);
  };
  for (const math of document.querySelectorAll("article mjx-container"))
    look(math, rgba(getComputedStyle(math).color), behind(math));
  for (const svg of document.querySelectorAll("article svg.drawing"))
    for (const text of svg.querySelectorAll("text")) {
      const style = getComputedStyle(text), color = rgba(style.fill);
      color[3] *= style.fillOpacity * style.opacity;
      look(text, color, shapes(svg, text, behind(svg)));
    }
  return faint;
}
