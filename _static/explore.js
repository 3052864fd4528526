// Sliders over frames that were drawn when the book was built (lib/explore.py).
document.addEventListener("DOMContentLoaded", () => {
  for (const figure of document.querySelectorAll("div.explore")) {
    const data = JSON.parse(figure.querySelector("script").textContent);
    const picture = figure.querySelector("img");
    const frames = [picture.src, ...data.frames.map((webp) => "data:image/webp;base64," + webp)];
    const parts = data.controls.map(([name, texts]) => {
      const row = document.createElement("label");
      const slider = document.createElement("input");
      const output = document.createElement("output");
      Object.assign(slider, { type: "range", min: 0, max: texts.length - 1, autocomplete: "off" });
      slider.value = Math.floor(texts.length / 2);
      slider.setAttribute("aria-label", name);
      output.setAttribute("aria-live", "off"); // the slider itself says its value
      row.append(name, slider, output);
      row.className = "explore-control";
      figure.append(row);
      return { texts, slider, output };
    });
    const show = () => {
      let combination = 0;
      for (const { texts, slider, output } of parts) {
        combination = combination * texts.length + Number(slider.value);
        output.textContent = texts[slider.value];
        slider.setAttribute("aria-valuetext", texts[slider.value]);
      }
      picture.src = frames[data.index[combination]];
    };
    for (const { slider } of parts) slider.addEventListener("input", show);
    show();
  }
});
