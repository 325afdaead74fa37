// The map of the embedding: dots that become pictures on the way in, one panel for the image under the pointer.
(() => {
  const canvas = document.getElementById("map-canvas");
  if (!canvas) return;
  const data = JSON.parse(document.getElementById("map-data").textContent);
  const panel = document.getElementById("map-panel"), legend = document.getElementById("map-legend");
  const colour = document.getElementById("map-colour"), context = canvas.getContext("2d");
  const SHAPES = ["disc", "cross", "ring", "square", "triangle"], PAD = 26, MOST = 60, PICTURES = 160;
  const view = { scale: 1, x: 0, y: 0 };
  let shown = -1, width = 0, height = 0, scrolled = 0;
  const sheet = new Image();
  if (data.sheet) { sheet.onload = draw; sheet.src = data.sheet; }

  const paint = (name) => getComputedStyle(canvas).getPropertyValue(name).trim();
  const kinds = () => (colour.value === "category" ? data.categories : data.states);
  const names = () => (colour.value === "category" ? data.category_names : data.state_names);
  const look = (kind) => ({ colour: `--s${kind % 4}`, shape: SHAPES[(kind + 2 * Math.floor(kind / 4)) % SHAPES.length] });  // 20 differ

  function place(index) {
    const [x, y] = data.points[index];
    return [
      (PAD + x * (width - 2 * PAD)) * view.scale + view.x,
      (PAD + (1 - y) * (height - 2 * PAD)) * view.scale + view.y,
    ];
  }

  function trace(pen, shape, x, y, r) {
    pen.beginPath();
    if (shape === "disc" || shape === "ring") pen.arc(x, y, r, 0, 7);
    else if (shape === "square") pen.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8);
    else if (shape === "triangle") { pen.moveTo(x, y - r * 1.2); pen.lineTo(x + r * 1.1, y + r * 0.8); pen.lineTo(x - r * 1.1, y + r * 0.8); pen.closePath(); }
    else { pen.moveTo(x - r, y - r); pen.lineTo(x + r, y + r); pen.moveTo(x + r, y - r); pen.lineTo(x - r, y + r); }
    pen.lineWidth = shape === "cross" ? 2 : 1.6;
    if (shape === "ring" || shape === "cross") pen.stroke();
    else pen.fill();
  }

  function inside([x, y]) { return x > -30 && y > -30 && x < width + 30 && y < height + 30; }

  function draw() {
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, width, height);
    const colours = [0, 1, 2, 3].map((k) => paint(`--s${k}`)), of = kinds();
    const places = data.points.map((_, index) => place(index));
    const visible = places.map((_, index) => index).filter((index) => inside(places[index]));
    const pictured = sheet.complete && data.sheet && view.scale > 1.5 && visible.length <= PICTURES;
    canvas.dataset.pictures = pictured ? visible.filter((index) => data.cells[index] >= 0).length : 0;
    for (const index of visible) {
      const [x, y] = places[index], kind = look(of[index]);
      const same = shown >= 0 && data.labels[index] === data.labels[shown];
      context.globalAlpha = shown >= 0 && !same ? 0.35 : 0.9;
      context.strokeStyle = context.fillStyle = colours[of[index] % 4];
      if (pictured && data.cells[index] >= 0) picture(index, x, y);
      else trace(context, kind.shape, x, y, same ? 6 : 4);
    }
    context.globalAlpha = 1;
    if (shown >= 0) {
      context.strokeStyle = paint("--ink");
      const [x, y] = places[shown];
      trace(context, "ring", x, y, 11);
    }
    canvas.dataset.scale = view.scale.toFixed(3);
    canvas.dataset.shown = shown;
  }

  function picture(index, x, y) {
    const size = 40, cell = data.cells[index], wrong = data.states[index] === 1;
    const left = (cell % data.columns) * data.cell, top = Math.floor(cell / data.columns) * data.cell;
    context.drawImage(sheet, left, top, data.cell, data.cell, x - size / 2, y - size / 2, size, size);
    context.lineWidth = 2.5;
    context.setLineDash(wrong ? [4, 3] : []);
    context.strokeRect(x - size / 2, y - size / 2, size, size);
    context.setLineDash([]);
  }

  function show(index) {
    shown = index;
    panel.classList.toggle("shown", index >= 0);
    canvas.style.touchAction = view.scale > 1 ? "none" : "pan-y";
    if (index >= 0) {
      panel.replaceChildren(...description(index));
      const [x, y] = place(index), box = panel.getBoundingClientRect();
      panel.style.left = `${Math.max(4, Math.min(width - box.width - 4, x + 16))}px`;
      panel.style.top = `${y + 16 + box.height > height ? Math.max(4, y - box.height - 16) : Math.max(4, y + 16)}px`;
    }
    draw();
  }

  function description(index) {
    const words = document.createElement("span"), name = document.createElement("b"), parts = [];
    const cell = data.cells[index];
    if (cell >= 0) {
      const image = document.createElement("i"), side = 72;
      image.style.backgroundImage = `url("${data.sheet}")`;
      image.style.backgroundSize = `${data.columns * side}px auto`;
      image.style.backgroundPosition = `${-(cell % data.columns) * side}px ${-Math.floor(cell / data.columns) * side}px`;
      parts.push(image);
    }
    name.textContent = data.label_names[data.labels[index]];
    words.append(name);
    const lines = [data.category_names[data.categories[index]], data.state_names[data.states[index]], data.names[index]];
    for (const line of lines.filter(Boolean)) {
      const small = document.createElement("small");
      small.textContent = line;
      words.append(small);
    }
    return [...parts, words];
  }

  function nearest(x, y, reach) {
    let best = -1, least = reach * reach;
    data.points.forEach((_, index) => {
      const [px, py] = place(index), distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least) { least = distance; best = index; }
    });
    return best;
  }

  function zoom(factor, x = width / 2, y = height / 2) {
    const scale = Math.min(MOST, Math.max(1, view.scale * factor)), ratio = scale / view.scale;
    view.x = x - (x - view.x) * ratio;
    view.y = y - (y - view.y) * ratio;
    view.scale = scale;
    keep();
    show(-1);
  }

  function keep() {  // the map covers its window: nobody gets lost in empty space
    view.x = Math.min(0, Math.max(width * (1 - view.scale), view.x));
    view.y = Math.min(0, Math.max(height * (1 - view.scale), view.y));
  }

  function describeLegend() {
    const used = new Set(kinds());
    legend.replaceChildren(...names().map((name, kind) => {
      const item = document.createElement("span"), sign = document.createElement("canvas");
      sign.width = sign.height = 28;
      sign.setAttribute("aria-hidden", "true");
      const pen = sign.getContext("2d"), { colour: ink, shape } = look(kind);
      pen.scale(2, 2);
      pen.strokeStyle = pen.fillStyle = paint(ink);
      trace(pen, shape, 7, 7, 4);
      item.append(sign, name);
      item.hidden = !used.has(kind);
      return item;
    }));
  }

  function move(direction) {  // to the next image that way, by the keyboard
    const [x, y] = shown >= 0 ? place(shown) : [width / 2, height / 2], [dx, dy] = direction;
    let best = -1, least = Infinity;
    data.points.forEach((_, index) => {
      const [px, py] = place(index), along = (px - x) * dx + (py - y) * dy, off = Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
      if (index !== shown && along > 0 && along >= off && along + off < least) { least = along + off; best = index; }
    });
    if (best >= 0) show(best);
  }

  const pointers = new Map();
  let moved = 0;
  const at = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const apart = ([a, b]) => Math.hypot(a[0] - b[0], a[1] - b[1]);
  canvas.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, at(event));
    canvas.setPointerCapture(event.pointerId);
    moved = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = at(event), before = pointers.get(event.pointerId);
    if (!before) { if (event.pointerType === "mouse") show(nearest(...now, 16)); return; }
    const old = [...pointers.values()];
    pointers.set(event.pointerId, now);
    const current = [...pointers.values()];
    if (current.length === 2) {
      const middle = [(current[0][0] + current[1][0]) / 2, (current[0][1] + current[1][1]) / 2];
      zoom(apart(current) / Math.max(1, apart(old)), ...middle);
      moved = 99;
      return;
    }
    moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (moved < 4) return;
    view.x += now[0] - before[0];
    view.y += now[1] - before[1];
    keep();
    show(-1);
  });
  canvas.addEventListener("pointerup", (event) => {
    pointers.delete(event.pointerId);
    if (moved < 4) show(nearest(...at(event), event.pointerType === "mouse" ? 16 : 28));
  });
  canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
  canvas.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse" && !pointers.size) show(-1); });
  canvas.addEventListener("wheel", (event) => {
    if (performance.now() - scrolled < 300) return;  // somebody scrolls past
    if (event.deltaY > 0 && view.scale === 1) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 400), ...at(event));
  }, { passive: false });
  const keys = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  canvas.addEventListener("keydown", (event) => {
    if (keys[event.key]) move(keys[event.key]);
    else if (event.key === "+" || event.key === "=") zoom(1.6);
    else if (event.key === "-") zoom(1 / 1.6);
    else if (event.key === "Escape") show(-1);
    else return;
    event.preventDefault();
  });
  canvas.addEventListener("blur", () => show(-1));
  document.getElementById("map-in").addEventListener("click", () => zoom(1.6));
  document.getElementById("map-out").addEventListener("click", () => zoom(1 / 1.6));
  document.getElementById("map-reset").addEventListener("click", () => zoom(0));
  colour.addEventListener("change", () => { describeLegend(); draw(); });
  addEventListener("scroll", () => { scrolled = performance.now(); }, { passive: true });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { describeLegend(); draw(); });
  new ResizeObserver(() => {
    ({ width, height } = canvas.getBoundingClientRect());
    canvas.width = width * devicePixelRatio;
    canvas.height = height * devicePixelRatio;
    keep();
    draw();
  }).observe(canvas);
  describeLegend();
})();
