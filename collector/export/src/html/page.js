"use strict";
// Shows the data of the page: a timeline, an icicle and a table, all of one selection.
// Names are foreign text: they come in as JSON and go out through textContent alone.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const ORIGINS = ["own", "torch", "library", "native", "backward"];
  const ROW = 20, SITES = 100;
  // Thinner frames are not drawn, in pixels; while a window is being dragged, fewer still.
  const LEAST = 1, LEAST_MOVING = 4;
  const state = { part: 0, weight: "bytes", window: null, zoom: [], pattern: null, sort: "value", down: true, all: false, moving: false };

  // ---- small helpers
  const make = (tag, options = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(options)) {
      if (key === "text") node.textContent = value;
      else if (key === "class") node.className = value;
      else if (key === "on") for (const [event, run] of Object.entries(value)) node.addEventListener(event, run);
      else node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  };
  const vector = (tag, attributes) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return node;
  };
  const count = (number) => Math.round(number).toLocaleString("en-US");
  const bytes = (number) => {
    const units = ["B", "KB", "MB", "GB", "TB", "PB"];
    let unit = 0;
    while (number >= 999.95 && unit + 1 < units.length) { number /= 1000; unit += 1; }
    return (unit ? number.toFixed(1) : count(number)) + " " + units[unit];
  };
  const seconds = (number) => number >= 3600 ? (number / 3600).toFixed(2) + " h"
    : number >= 120 ? (number / 60).toFixed(1) + " min" : number >= 1 ? number.toFixed(1) + " s" : (number * 1000).toFixed(0) + " ms";
  const amount = (number) => state.weight === "blocks" ? count(number) + (number === 1 ? " block" : " blocks")
    : bytes(number) + (data.kind === "growth" ? "/step" : "");
  const percent = (part, whole) => whole > 0 ? (100 * part / whole).toFixed(part === whole ? 0 : 1) + " %" : "";
  const part = () => data.parts[state.part];
  const value = (row) => row[state.weight === "bytes" ? 2 : 3];

  // ---- what is selected
  const inWindow = (row) => !state.window || (row[1] >= state.window[0] && row[1] < state.window[1]);
  const rows = () => part().rows.filter(inWindow);
  const bucketTime = (bucket) => data.seconds * bucket / data.buckets;
  const matches = (frame) => state.pattern !== null && state.pattern.test(data.frames[frame][0]);

  const tree = () => {
    const root = { frame: -1, value: 0, children: new Map(), parent: null, depth: 0, hit: false };
    for (const row of rows()) {
      let node = root;
      node.value += value(row);
      for (const frame of data.stacks[row[0]].frames) {
        let child = node.children.get(frame);
        if (!child) {
          child = { frame, value: 0, children: new Map(), parent: node, depth: node.depth + 1, hit: matches(frame) };
          node.children.set(frame, child);
        }
        child.value += value(row);
        node = child;
      }
    }
    return root;
  };
  const zoomed = (root) => {
    let node = root;
    for (const frame of state.zoom) {
      const child = node.children.get(frame);
      if (!child || child.value === 0) break;
      node = child;
    }
    return node;
  };
  const path = (node) => {
    const frames = [];
    for (let at = node; at.parent; at = at.parent) frames.unshift(at.frame);
    return frames;
  };

  // ---- icicle
  let drawn = new Map(), focused = null, shownRoot = null;
  const drawGraph = () => {
    const graph = $("graph"), hadFocus = graph.contains(document.activeElement);
    const root = tree(), top = zoomed(root), width = graph.clientWidth || 1000;
    const nodes = [];
    drawn = new Map();
    const place = (node, left, share, level) => {
      if (share * width < (state.moving ? LEAST_MOVING : LEAST)) return;
      const frame = node.frame < 0 ? null : data.frames[node.frame];
      const text = frame ? frame[0] : "all";
      const element = make("div", {
        class: "frame " + (frame ? ORIGINS[frame[1]] : "root") + (node.hit ? " hit" : state.pattern && frame ? " dim" : ""),
        role: "treeitem", tabindex: "-1", "aria-level": node.depth + 1,
        "aria-label": `${text}, ${amount(node.value)}, ${percent(node.value, root.value)}`,
        text: share * width > 26 ? text : "",
      });
      element.style.left = 100 * left + "%";
      element.style.width = 100 * share + "%";
      element.style.top = level * ROW + "px";
      nodes.push(element);
      drawn.set(element, node);
      node.element = element;
      let from = left;
      for (const child of [...node.children.values()].sort((a, b) => b.value - a.value)) {
        if (child.value <= 0 || node.value <= 0) continue;
        const part = share * child.value / node.value;
        place(child, from, part, level + 1);
        from += part;
      }
    };
    const ancestors = [];
    for (let at = top.parent; at; at = at.parent) ancestors.unshift(at);
    ancestors.forEach((node, level) => { placeWide(node, level, nodes); });
    place(top, 0, 1, ancestors.length);
    const levels = nodes.reduce((most, node) => Math.max(most, parseInt(node.style.top, 10)), 0);
    graph.style.height = (root.value > 0 ? levels + ROW : 0) + "px";
    graph.replaceChildren(...(root.value > 0 ? nodes : []));
    focused = top.element || null;
    if (focused) focused.tabIndex = 0;
    if (hadFocus && focused) focused.focus();
    shownRoot = root;
    describe(root, top);
  };
  const placeWide = (node, level, nodes) => {
    const frame = node.frame < 0 ? null : data.frames[node.frame];
    const element = make("div", {
      class: "frame dim " + (frame ? ORIGINS[frame[1]] : "root"), role: "treeitem", tabindex: "-1",
      "aria-level": node.depth + 1, text: frame ? frame[0] : "all",
    });
    element.style.left = "0"; element.style.width = "100%"; element.style.top = level * ROW + "px";
    nodes.push(element);
    drawn.set(element, node);
    node.element = element;
  };
  const detail = (node, root) => {
    const place = node.frame < 0 ? "" : data.frames[node.frame];
    $("detail").textContent = node.frame < 0 ? `all: ${amount(node.value)}`
      : `${place[0]}: ${amount(node.value)}, ${percent(node.value, root.value)}` + (place[2] ? `  —  ${place[2]}${place[3] ? ":" + place[3] : ""}` : "");
  };
  const zoom = (node) => { state.zoom = path(node); draw(); };
  const describe = (root, top) => {
    const status = $("status"), whole = part().rows.reduce((sum, row) => sum + value(row), 0);
    status.replaceChildren();
    if (root.value === 0) { status.textContent = state.window ? "Nothing that was allocated in this window is still there." : "Nothing to show."; return; }
    const exact = state.weight === "blocks" ? "" : count(root.value) + " bytes";
    status.append(make("b", { text: amount(root.value), title: exact }));
    if (state.window) {
      status.append(` allocated from ${seconds(bucketTime(state.window[0]))} to ${seconds(bucketTime(state.window[1]))} and still there, ${percent(root.value, whole)} of all`);
    }
    if (top !== root) status.append(`; shown: ${amount(top.value)}, ${percent(top.value, root.value)}`);
    if (state.pattern) {
      const found = rows().filter((row) => data.stacks[row[0]].frames.some(matches)).reduce((sum, row) => sum + value(row), 0);
      status.append("; found: ", make("b", { text: found ? `${amount(found)}, ${percent(found, root.value)}` : "nothing" }));
    }
  };
  for (const [event, run] of [["click", zoom], ["focusin", (node) => detail(node, shownRoot)], ["mouseover", (node) => detail(node, shownRoot)]]) {
    $("graph").addEventListener(event, ({ target }) => { if (drawn.has(target)) run(drawn.get(target)); });
  }
  $("graph").addEventListener("keydown", (event) => {
    const node = drawn.get(document.activeElement);
    if (!node) return;
    const shown = (list) => list.filter((one) => one.element && one.element.isConnected);
    const children = (of) => shown([...of.children.values()].sort((a, b) => b.value - a.value));
    let to = null;
    if (event.key === "ArrowUp") to = node.parent;
    else if (event.key === "ArrowDown") to = children(node)[0];
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const line = node.parent ? children(node.parent) : [];
      to = line[line.indexOf(node) + (event.key === "ArrowRight" ? 1 : -1)];
    } else if (event.key === "Enter" || event.key === " ") { event.preventDefault(); zoom(node); return; }
    else if (event.key === "Escape") { event.preventDefault(); state.zoom = state.zoom.slice(0, -1); draw(); return; }
    else return;
    event.preventDefault();
    if (to && to.element) {
      document.activeElement.tabIndex = -1;
      to.element.tabIndex = 0;
      to.element.focus();
    }
  });

  // ---- table
  const COLUMNS = [["site", "Site"], ["value", ""], ["other", ""], ["stacks", "Stacks"], ["born", "Allocated"]];
  const drawTable = () => {
    const sites = new Map();
    let whole = 0;
    for (const row of rows()) {
      const stack = data.stacks[row[0]];
      whole += value(row);
      if (state.pattern && !stack.frames.some(matches)) continue;
      let site = sites.get(stack.own);
      if (!site) sites.set(stack.own, site = { frame: stack.own, value: 0, other: 0, stacks: new Set(), born: null });
      site.value += value(row);
      site.other += row[state.weight === "bytes" ? 3 : 2];
      site.stacks.add(row[0]);
      if (row[1] >= 0) site.born = site.born ? [Math.min(site.born[0], row[1]), Math.max(site.born[1], row[1])] : [row[1], row[1]];
    }
    const key = { site: (site) => data.frames[site.frame][0], value: (site) => site.value, other: (site) => site.other,
      stacks: (site) => site.stacks.size, born: (site) => site.born ? site.born[0] : -1 }[state.sort];
    const list = [...sites.values()].filter((site) => site.value > 0 || site.other > 0).sort((a, b) => {
      const order = key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0;
      return (state.down ? -order : order) || b.value - a.value;
    });
    const names = { value: state.weight === "bytes" ? (data.kind === "growth" ? "Bytes a step" : "Bytes") : "Blocks",
      other: state.weight === "bytes" ? "Blocks" : "Bytes" };
    $("head").replaceChildren(...COLUMNS.filter(([id]) => id !== "other" || data.kind !== "growth").map(([id, name]) => {
      const arrow = state.sort === id ? (state.down ? " ▾" : " ▴") : "";
      const cell = make("th", { scope: "col", class: id === "born" || id === "stacks" ? "wide" : "" }, make("button", { type: "button", text: (name || names[id]) + arrow,
        on: { click: () => { state.down = state.sort === id ? !state.down : id !== "site"; state.sort = id; drawTable(); } } }));
      if (arrow) cell.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      return cell;
    }));
    const shown = state.all ? list : list.slice(0, SITES);
    $("sites").replaceChildren(...shown.map((site) => {
      const frame = data.frames[site.frame], share = whole > 0 ? site.value / whole : 0;
      const bar = make("span", { class: "bar" });
      bar.style.width = Math.round(60 * share) + "px";
      const find = () => { $("search").value = "^" + frame[0].replace(/[.*+?^${}()|[\]\\\/]/g, "\\$&") + "$"; search(); };
      const cells = [
        make("td", {}, make("i", { class: ORIGINS[frame[1]] }), make("button", { type: "button", text: frame[0], title: "Find it in the graph", on: { click: find } })),
        make("td", {}, amount(site.value) + "  " + percent(site.value, whole), make("span", { class: "bar-box" }, bar)),
      ];
      if (data.kind !== "growth") cells.push(make("td", { text: state.weight === "bytes" ? count(site.other) : bytes(site.other) }));
      cells.push(make("td", { class: "wide", text: count(site.stacks.size) }));
      cells.push(make("td", { class: "wide", text: site.born ? `${seconds(bucketTime(site.born[0]))} – ${seconds(bucketTime(site.born[1] + 1))}` : "" }));
      return make("tr", {}, ...cells);
    }));
    $("table-title").textContent = `Sites: ${count(list.length)}`;
    $("more").hidden = list.length <= shown.length;
    $("more").textContent = `Show all ${count(list.length)}`;
  };
  $("more").addEventListener("click", () => { state.all = true; drawTable(); });

  // ---- timeline
  const drawTimeline = () => {
    const { series, marks } = part(), box = $("timeline");
    box.replaceChildren();
    const usable = series.time.length > 1 && data.seconds > 0;
    $("timeline-section").hidden = !usable;
    if (!usable) return;
    const width = 1000, height = 132;
    const most = series.allocated.concat(series.reserved).reduce((a, b) => Math.max(a, b), 1);
    const x = (time) => width * Math.min(1, Math.max(0, time / data.seconds));
    const y = (number) => height - (height - 6) * number / most;
    const line = (values) => values.map((number, at) => `${at ? "L" : "M"}${x(series.time[at]).toFixed(2)} ${y(number).toFixed(2)}`).join("");
    const svg = vector("svg", { viewBox: `0 0 ${width} 150`, preserveAspectRatio: "none", "aria-hidden": "true" });
    svg.append(vector("path", { d: `${line(series.allocated)}L${x(series.time.at(-1))} ${height}L${x(series.time[0])} ${height}Z`, fill: "var(--area)" }));
    for (const name of ["reserved", "allocated", "floor"]) {
      svg.append(vector("path", { d: line(series[name]), fill: "none", stroke: `var(--${name})`, "stroke-width": name === "floor" ? 2 : 1.3, "vector-effect": "non-scaling-stroke" }));
    }
    svg.append(vector("line", { x1: 0, x2: width, y1: height, y2: height, stroke: "var(--line)", "vector-effect": "non-scaling-stroke" }));
    for (const [time, name] of marks) {
      const mark = vector("line", { x1: x(time), x2: x(time), y1: 0, y2: height, stroke: "var(--accent)", "stroke-dasharray": "3 3", "vector-effect": "non-scaling-stroke" });
      const title = vector("title", {});
      title.textContent = `${name} at ${seconds(time)}`;
      mark.append(title);
      svg.append(mark);
    }
    const label = (text, style) => { const node = make("span", { class: "axis", text }); Object.assign(node.style, style); return node; };
    box.append(svg, label(bytes(most), { left: "4px", top: "2px" }), label("0 s", { left: "0", bottom: "0" }), label(seconds(data.seconds), { right: "0", bottom: "0" }));
    for (const [time, name] of marks) {
      const share = time / data.seconds;
      box.append(label(name, share > 0.8 ? { right: 100 * (1 - share) + "%", top: "2px", paddingRight: "4px" } : { left: 100 * share + "%", top: "2px", paddingLeft: "4px" }));
    }
    box.append(make("div", { id: "window", hidden: "" }));
    drawWindow();
  };
  const drawWindow = () => {
    const node = $("window"), box = $("timeline");
    box.setAttribute("aria-label", state.window ? `Window from ${seconds(bucketTime(state.window[0]))} to ${seconds(bucketTime(state.window[1]))}` : "No window: the whole time");
    if (!node) return;
    node.hidden = !state.window;
    if (!state.window) return;
    node.style.left = 100 * state.window[0] / data.buckets + "%";
    node.style.width = 100 * (state.window[1] - state.window[0]) / data.buckets + "%";
  };
  const setWindow = (from, to) => {
    const clip = (bucket) => Math.max(0, Math.min(data.buckets, bucket));
    state.window = from === null ? null : [clip(Math.min(from, to)), clip(Math.max(from, to))];
    if (state.window && state.window[0] === state.window[1]) state.window = null;
    drawWindow();
    // Many moves of a pointer come between two pictures.
    if (!waiting) waiting = requestAnimationFrame(() => { waiting = 0; draw(); });
  };
  let waiting = 0;
  const timed = () => part().rows.some((row) => row[1] >= 0);
  {
    const box = $("timeline");
    let from = null;
    const at = (event) => {
      const area = box.getBoundingClientRect();
      return data.buckets * (event.clientX - area.left) / area.width;
    };
    box.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !timed()) return;
      from = at(event);
      box.setPointerCapture(event.pointerId);
    });
    box.addEventListener("pointermove", (event) => {
      if (from === null) return;
      const to = at(event);
      state.moving = true;
      setWindow(Math.floor(Math.min(from, to)), Math.ceil(Math.max(from, to)));
    });
    box.addEventListener("pointerup", (event) => {
      if (from === null) return;
      state.moving = false;
      if (Math.abs(at(event) - from) < 0.5) setWindow(null);
      else setWindow(...(state.window || [null]));
      from = null;
    });
    box.addEventListener("pointercancel", () => { from = null; state.moving = false; draw(); });
    box.addEventListener("keydown", (event) => {
      if (!timed()) return;
      const step = Math.max(1, Math.round(data.buckets / 50));
      const [start, end] = state.window || [0, step];
      const right = event.key === "ArrowRight" ? step : -step;
      if (event.key === "Escape") setWindow(null);
      else if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      else if (!state.window) setWindow(0, 5 * step);
      else if (event.shiftKey) setWindow(start, Math.max(start + 1, end + right));
      else if (start + right >= 0 && end + right <= data.buckets) setWindow(start + right, end + right);
      event.preventDefault();
    });
  }

  // ---- search, switches, address
  const search = () => {
    const text = $("search").value;
    state.pattern = null;
    $("search").classList.remove("wrong");
    $("search").title = "";
    if (text) {
      try { state.pattern = new RegExp(text, "iu"); } catch {
        try { state.pattern = new RegExp(text, "i"); } catch (error) {
          $("search").classList.add("wrong");
          $("search").title = error.message;
        }
      }
    }
    drawGraph(); drawTable(); remember();
  };
  const remember = () => {
    const words = new URLSearchParams();
    if (state.part) words.set("part", state.part);
    if (state.weight !== "bytes") words.set("by", state.weight);
    if (state.window) words.set("window", state.window.join("-"));
    if ($("search").value) words.set("find", $("search").value);
    const theme = document.documentElement.dataset.theme;
    if (theme !== preferred) words.set("theme", theme);
    const text = words.toString();
    try { history.replaceState(null, "", text ? "#" + text : location.pathname + location.search); } catch { /* not in a sandboxed frame */ }
  };
  const preferred = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const recall = () => {
    const words = new URLSearchParams(location.hash.slice(1));
    const number = Number(words.get("part"));
    if (Number.isInteger(number) && data.parts[number]) state.part = number;
    if (words.get("by") === "blocks" && data.kind !== "growth") state.weight = "blocks";
    const ends = (words.get("window") || "").split("-").map(Number);
    if (ends.length === 2 && ends.every(Number.isInteger) && ends[0] < ends[1]) state.window = [Math.max(0, ends[0]), Math.min(data.buckets, ends[1])];
    if (words.get("find")) $("search").value = words.get("find");
    const theme = words.get("theme");
    document.documentElement.dataset.theme = theme === "dark" || theme === "light" ? theme : preferred;
  };
  $("search").addEventListener("input", search);
  $("theme").addEventListener("click", () => {
    const root = document.documentElement;
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    remember();
  });
  $("reset").addEventListener("click", () => {
    Object.assign(state, { window: null, zoom: [], all: false });
    $("search").value = "";
    search(); drawWindow();
  });
  $("part").addEventListener("change", () => { Object.assign(state, { part: Number($("part").value), window: null, zoom: [] }); draw(); drawTimeline(); });
  for (const input of document.querySelectorAll("[name=weight]")) {
    input.addEventListener("change", () => { state.weight = input.value; draw(); });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/INPUT|SELECT/.test(document.activeElement.tagName)) { event.preventDefault(); $("search").focus(); }
  });
  let resizing = 0;
  addEventListener("resize", () => { cancelAnimationFrame(resizing); resizing = requestAnimationFrame(drawGraph); });

  const draw = () => { drawGraph(); drawTable(); remember(); };
  recall();
  document.title = `${data.title} – vramscope`;
  $("title").textContent = data.title;
  $("subtitle").textContent = data.subtitle;
  $("subtitle").title = data.subtitle;
  $("graph-title").textContent = "By stack";
  $("notes").replaceChildren(...data.notes.map((text) => make("li", { text })));
  $("part").replaceChildren(...data.parts.map((one, at) => make("option", { value: at, text: one.name })));
  $("part").value = state.part;
  $("part-label").hidden = data.parts.length < 2;
  $("weights").hidden = data.kind === "growth";
  document.querySelector(`[name=weight][value=${state.weight}]`).checked = true;
  const swatch = (text, style) => { const box = make("i"); Object.assign(box.style, style); return make("li", {}, box, text); };
  $("timeline-legend").replaceChildren(...["allocated", "floor", "reserved"].map((name) => swatch(name, { background: `var(--${name})` })));
  $("graph-legend").replaceChildren(...data.origins.map((name, at) => swatch(name, { background: `var(--${ORIGINS[at]})` })));
  if (data.parts.length) {
    $("timeline-help").hidden = !timed();
    drawTimeline();
    search();
  } else $("status").textContent = "Nothing was allocated.";
})();
