// The page of a run. Every second it asks /api/status (docs/metrics.md), and shows what the counters have grown by in the
// last seconds. All texts come in as text nodes: names and rules may contain anything.
"use strict";

const kEvery = 1000;    // ms between questions
const kPatience = 4000; // ms without an answer until the page says so
const kWindow = 3;      // seconds over which rates are taken: calm, but not late
const kKept = 120;      // points of a line

const byId = (id) => document.getElementById(id);

// ---- numbers

const kNumber = new Intl.NumberFormat("en", {maximumSignificantDigits: 3});
/** [“1.02”, “M”] */
function scaled(value) {
  for (const [limit, prefix] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= limit * 0.9995) return [kNumber.format(value / limit), prefix];
  }
  return [value > 0 && value < 0.1 ? "< 0.1" : kNumber.format(value >= 100 ? Math.round(value) : value), ""];
}
const si = (value, unit) => { const [n, prefix] = scaled(value); return `${n} ${prefix}${unit}`.trimEnd(); };
const rate = (value) => value > 0 ? si(value, "/s") : "0";
const bits = (value) => value > 0 ? si(value * 8, "bit/s") : "";
const share = (part) => part > 0 && part < 0.001 ? "< 0.1 %" : `${kNumber.format(Math.round(part * 1000) / 10)} %`;
const bytes = (value) => si(value, "B");
function time(us) {
  if (us >= 1e6) return [kNumber.format(us / 1e6), "s"];
  if (us >= 1e3) return [kNumber.format(us / 1e3), "ms"];
  return [kNumber.format(us), "µs"];
}
function span(seconds) {
  const s = Math.floor(seconds), d = Math.floor(s / 86400), h = Math.floor(s / 3600) % 24, m = Math.floor(s / 60) % 60;
  if (d > 0) return `${d} d ${h} h`;
  if (h > 0) return `${h} h ${m} min`;
  return m > 0 ? `${m} min ${s % 60} s` : `${s} s`;
}
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

// ---- elements

function element(name, attributes = {}, ...children) {
  const made = name.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4))
                                       : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
const show = (id, ...children) => byId(id).replaceChildren(...children);
/** A number, and its unit in small letters. */
const big = (text) => { const at = text.indexOf(" "); return at < 0 ? [text] : [text.slice(0, at), element("small", {}, text.slice(at))]; };

// ---- answers

const answers = [];       // the last ones, the newest last
const lines = {in: [], out: [], drop: [], latency: []};
let heard = performance.now();

/** What a counter has grown by, per second. `of` gets it from an answer. */
function perSecond(of) {
  const now = answers.at(-1), before = answers[0];
  const seconds = now.elapsed_s - before.elapsed_s;
  if (answers.length < 2 || !(seconds > 0)) return 0;
  const growth = of(now) - (of(before) ?? 0);
  return growth > 0 ? growth / seconds : 0;
}

/** The latency that a part of the packets of the last seconds did not exceed, in µs; null: there were none. */
function latency(part) {
  const now = answers.at(-1).latency, before = answers.length > 1 ? answers[0].latency : null;
  const count = now.count - (before ? before.count : 0);
  if (!(count > 0)) return null;
  let below = 0, limit = 0;
  for (const [i, [us, total]] of now.at_most_us.entries()) {
    const here = total - (before ? before.at_most_us[i][1] : 0);
    if (here >= part * count) return limit + (us - limit) * (part * count - below) / Math.max(1, here - below);
    below = here;
    limit = us;
  }
  return limit;
}

// ---- parts of the page

function showHead(now) {
  byId("state").textContent = now.state;
  byId("state").dataset.state = now.state;
  byId("chain-file").textContent = now.chain.split("/").slice(-2).join("/");
  byId("chain-file").title = now.chain;
  byId("uptime").textContent = now.report ? `for ${span(now.elapsed_s)}` : "";
  const workers = now.report ? now.report.workers : 0;
  byId("machine").textContent = `${now.processor === "gpu" ? "GPU" : "CPU"}${workers ? `, ${workers} worker${workers === 1 ? "" : "s"}` : ""}`;
  byId("version").textContent = now.penstock.version;
  const received = now.report ? `${rate(perSecond((a) => a.report.packets.in))} – ` : "";
  document.title = `${received}${now.chain.split("/").at(-1)} – Penstock`;
}

function drawLine(id, points) {
  const most = Math.max(...points, 1e-9), step = 300 / (kKept - 1);
  const at = points.map((value, i) => `${((kKept - points.length + i) * step).toFixed(1)} ${(31 - 27 * value / most).toFixed(1)}`);
  const svg = byId(id);
  svg.setAttribute("viewBox", "0 0 300 32");
  svg.setAttribute("preserveAspectRatio", "none");
  const start = ((kKept - points.length) * step).toFixed(1);
  svg.replaceChildren(element("svg:path", {class: "area", d: `M${start} 32 L${at.join(" L")} L300 32 Z`}),
                      element("svg:path", {class: "top", d: `M${at.join(" L")}`}));
}

function showFigures() {
  const packets = (name) => perSecond((a) => a.report.packets[name]);
  const ofBytes = (name) => perSecond((a) => a.report.bytes[name]);
  const [received, out, dropped] = [packets("in"), packets("forwarded"), packets("dropped")];
  show("in-packets", ...big(rate(received)));
  show("in-bits", bits(ofBytes("in")));
  show("out-packets", ...big(rate(out)));
  show("out-bits", bits(ofBytes("forwarded")));
  show("drop-packets", ...big(rate(dropped)));
  show("drop-share", received > 0 ? `${share(dropped / received)} of what is received` : "");
  const half = latency(0.5);
  show("latency-half", ...(half === null ? ["–"] : big(time(half).join(" "))));
  show("latency-more", half === null ? "no packets" : `median; 99 %: ${time(latency(0.99)).join(" ")}`);
  if (answers.length < 2) return;
  for (const [name, value] of [["in", received], ["out", out], ["drop", dropped], ["latency", latency(0.99) ?? 0]]) {
    lines[name].push(value);
    if (lines[name].length > kKept) lines[name].shift();
    drawLine(`${name}-line`, lines[name]);
  }
}

/** A list with bars: {what, of, text, value, unit}, the largest first. */
function showBars(id, entries, none) {
  const most = Math.max(...entries.map((entry) => entry.value), 1e-9);
  show(id, ...entries.map((entry) => {
    const bar = element("i", {class: "bar"});
    bar.style.width = `${(100 * entry.value / most).toFixed(1)}%`;
    const row = element("li", entry.loss ? {class: "loss"} : {}, element("span", {class: "what"}, entry.what, " ", element("small", {}, entry.of)),
                        element("span", {class: "value"}, entry.shown, " ", element("small", {}, entry.total)));
    if (entry.text) row.append(element("span", {class: "text"}, entry.text));
    row.append(bar);
    return row;
  }));
  if (entries.length === 0) show(id, element("li", {class: "none"}, none));
}

const kReasons = {queue_full: "queue full", no_such_exit: "no such exit", port_refused: "port refused", hand_over_full: "hand-over full"};

function showDrops(now) {
  const found = [];
  const add = (what, of, count, loss) => {
    const total = count(now);
    if (total > 0) found.push({what, of, loss, total: `${si(total, "")} in all`, value: perSecond(count), shown: rate(perSecond(count)), count: total});
  };
  now.report.functions.forEach((f, i) => {
    for (const reason of Object.keys(f.dropped.reasons))
      add(reason.replaceAll("_", " "), f.name, (a) => a.report.functions[i].dropped.reasons[reason] ?? 0);
  });
  for (const reason of Object.keys(now.report.dropped_by_chain))
    add(kReasons[reason] ?? reason, "chain", (a) => a.report.dropped_by_chain[reason] ?? 0, true);
  for (const [name, port] of Object.entries(now.report.ports)) {
    for (const place of Object.keys(port.lost ?? {}))
      add(place.replaceAll("_", " "), `lost at ${name}`, (a) => a.report.ports[name].lost[place] ?? 0, true);
  }
  found.sort((a, b) => b.value - a.value || b.count - a.count);
  showBars("drops", found.slice(0, 10), "No packet was dropped or lost.");
}

function meter(part) {
  const bar = element("meter-bar", {}, element("i"));
  bar.firstChild.style.width = `${(100 * Math.min(1, Math.max(0, part))).toFixed(1)}%`;
  return element("td", {class: "meter"}, bar);
}

function showWorkers(now) {
  const head = element("tr", {}, element("th", {scope: "col"}, "worker"), element("th", {scope: "col", colspan: "2"}, "busy"),
                       element("th", {scope: "col"}, "in the queue"));
  const rows = now.report.by_worker.slice(0, 64).map((worker, i) => {
    const busy = answers.length < 2 ? 0 : 1 - Math.min(1, perSecond((a) => a.report.by_worker[i].idle_s));
    const queue = now.report.shared_queue ?? worker.queue;
    return element("tr", {}, element("td", {}, String(i)), meter(busy), element("td", {}, share(busy)),
                   element("td", queue.bytes > queue.capacity_bytes / 2 ? {class: "bad"} : {}, bytes(queue.bytes), " ",
                           element("small", {}, `of ${bytes(queue.capacity_bytes)}`)));
  });
  show("workers", element("thead", {}, head), element("tbody", {}, ...rows));
}

function showGpu(now) {
  byId("gpu").hidden = !now.report.gpu;
  if (!now.report.gpu) return;
  const facts = now.gpu_use.map(({gpu, busy}) => [`GPU ${gpu} busy`, share(busy)]);
  facts.push(["to the GPU", si(perSecond((a) => a.report.pcie.to_device_bytes) * 8, "bit/s")],
             ["from the GPU", si(perSecond((a) => a.report.pcie.to_host_bytes) * 8, "bit/s")],
             ["memory", bytes(now.report.gpu.memory_bytes)],
             ["segments", rate(perSecond((a) => a.report.gpu.segments))],
             ["packets left to the CPU", rate(perSecond((a) => a.report.gpu.punted))],
             ["failed segments", si(now.report.gpu.failures, "")]);
  show("gpu-facts", ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

function showTop(section, list, key, now) {
  const entries = now[key].map((entry) => {
    const same = (other) => other.function === entry.function && other.name === entry.name;
    const value = perSecond((a) => (a[key].find(same) ?? entry).count);
    return {what: entry.name, of: entry.function, text: entry.text, value: entry.count, shown: si(entry.count, ""), total: value > 0 ? rate(value) : ""};
  });
  byId(section).hidden = entries.length === 0;
  showBars(list, entries, "");
}

function table(id, heads, rows) {
  show(id, element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", head === "about" ? {scope: "col", class: "about"} : {scope: "col"}, head)))),
       element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells.map((cell) => cell instanceof Node ? cell : element("td", {}, cell))))));
}

function showTables(now) {
  const bad = (value, text) => element("td", value > 0 ? {class: "bad"} : {}, text);
  table("functions", ["function", "in", "forwarded", "dropped", "consumed", "time per packet", "about"], now.report.functions.map((f, i) => {
    const of = (name) => perSecond((a) => a.report.functions[i][name].packets);
    const packets = of("in"), spent = perSecond((a) => a.report.functions[i].time_s);
    const on = now.plan.functions[i].processor === "gpu" ? "GPU" : "CPU";
    return [element("td", {}, f.name, " ", element("small", {}, on)), rate(packets), rate(of("forwarded")), bad(of("dropped"), rate(of("dropped"))),
            rate(of("consumed")), packets > 0 && spent > 0 ? `${kNumber.format(spent / packets * 1e9)} ns` : "–",
            element("td", {class: "about"}, f.description)];
  }));
  const both = (of, way) => element("td", {class: "port-rates"}, rate(of(way, "packets")), " ", element("small", {}, bits(of(way, "bytes"))));
  table("ports", ["port", "link", "in", "out", "lost"], now.ports.map((port) => {
    const of = (way, what) => perSecond((a) => a.report.ports[port.name][way][what]);
    const lost = perSecond((a) => sum(Object.values(a.report.ports[port.name].lost ?? {})));
    return [element("td", {}, port.name, " ", element("small", {}, port.kind ?? "")),
            element("td", port.link && port.link !== "up" ? {class: "bad"} : {}, port.link ?? "–"),
            port.reads ? both(of, "in") : "–", port.writes ? both(of, "out") : "–",
            "lost" in now.report.ports[port.name] ? bad(lost, rate(lost)) : "–"];
  }));
}

function showNotes(now) {
  const notes = [...now.warnings];
  if (now.last_reload) notes.unshift(`The last ${now.last_reload.what} (${now.last_reload.at.replace("T", " ").replace("Z", " UTC")}): ${now.last_reload.outcome.replaceAll("_", " ")}.`);
  for (const error of now.report.errors ?? []) notes.push(error);
  byId("notes").hidden = notes.length === 0;
  show("note-list", ...notes.map((note) => element("li", {}, note)));
}

// ---- the picture of the chain
//
// Columns from the ports that read to those that write; a function is a column, and a fork is as many as its longest arm
// has functions. `lane` is the position across, in units of boxes around 0.

function chainGraph(now) {
  const nodes = [], edges = [];
  const add = (node) => { nodes.push(node); return node; };
  const join = (from, to, value, when) => edges.push({from, to, value, when});
  const spread = (count, i) => i - (count - 1) / 2;
  const functionNode = (i, column, lane) => {
    const dropped = perSecond((a) => a.report.functions[i].dropped.packets);
    return add({title: now.report.functions[i].name, kind: now.plan.functions[i].processor === "gpu" ? "gpu" : "cpu",
                sub: now.plan.functions[i].processor === "gpu" ? "GPU" : "CPU", dropped, column, lane, index: i,
                received: perSecond((a) => a.report.functions[i].in.packets)});
  };
  const received = (i) => perSecond((a) => a.report.functions[i].in.packets);
  const passed = (i) => perSecond((a) => a.report.functions[i].forwarded.packets);

  let column = 1;
  const reading = now.ports.filter((port) => port.reads);
  let open = reading.map((port, i) => {  // ends that the next node joins: [node, packets per second]
    const value = perSecond((a) => a.report.ports[port.name].in.packets);
    return [add({title: port.name, kind: "port", sub: port.kind ?? "", column: 0, lane: spread(reading.length, i), received: value}), value];
  });
  const joined = () => {  // where several ends meet several ways
    if (open.length === 1) return open[0][0];
    const dot = add({kind: "joint", column: column++, lane: 0});
    for (const [node, value] of open) join(node, dot, value);
    open = [[dot, sum(open.map(([, value]) => value))]];
    return dot;
  };
  const {functions, forks} = now.plan;
  for (let i = 0; i < functions.length;) {
    const fork = forks.find((candidate) => candidate.first === i && candidate.last > i);
    if (!fork) {
      const node = functionNode(i, column++, 0);
      for (const [from, value] of open) join(from, node, open.length === 1 ? received(i) : value);
      open = [[node, passed(i)]];
      ++i;
      continue;
    }
    const from = joined();
    const arms = fork.arms.map((arm) => ({...arm}));
    if (!fork.all_take_an_arm) arms.push({first: i, last: i, condition: "others"});
    const before = open[0][1], taken = sum(arms.filter((arm) => arm.last > arm.first).map((arm) => received(arm.first)));
    const bare = arms.filter((arm) => arm.last === arm.first).length;
    const length = Math.max(1, ...arms.map((arm) => arm.last - arm.first));
    open = [];
    arms.forEach((arm, lane) => {
      let last = from;
      for (let f = arm.first; f < arm.last; ++f) {
        const node = functionNode(f, column + f - arm.first, spread(arms.length, lane));
        join(last, node, received(f), f === arm.first ? arm.condition : undefined);
        last = node;
      }
      if (arm.last > arm.first) return open.push([last, passed(arm.last - 1)]);
      // Packets that skip the fork, as far as they can be distinguished.
      const rest = bare === 1 ? Math.max(0, before - taken) : NaN;
      const way = add({kind: "way", title: arm.condition, column, lane: spread(arms.length, lane)});
      join(from, way, rest);
      open.push([way, rest]);
    });
    column += length;
    i = fork.last;
  }
  const writing = now.ports.filter((port) => port.writes);
  const ends = writing.map((port, i) => add({title: port.name, kind: "port", sub: port.kind ?? "", lane: spread(writing.length, i), end: true,
                                             received: perSecond((a) => a.report.ports[port.name].out.packets)}));
  if (ends.length === 0) ends.push(add({title: "consumed", kind: "port", sub: "", lane: 0, end: true, received: perSecond((a) => a.report.packets.consumed)}));
  if (open.length > 1 && ends.length > 1) joined();
  for (const end of ends) end.column = column;
  for (const [from, value] of open) for (const end of ends) join(from, end, open.length > 1 ? value : end.received);
  return {nodes, edges, columns: column + 1, most: Math.max(1, ...edges.map((edge) => edge.value || 0))};
}

function cut(text, most) { return text.length <= most ? text : text.slice(0, Math.max(1, most - 1)) + "…"; }

/** Conditions of arms in fewer words. */
const conditionText = (text) => text.replaceAll("in_port ", "from ").replaceAll("out_port ", "to ").replaceAll(" or ", ", ");

const kBox = {w: 118, h: 68};

/** Where everything lies: from left to right if there is room, else from top to bottom. */
function lay(graph, room) {
  const lanes = graph.nodes.map((node) => node.lane), least = Math.min(...lanes), count = Math.max(...lanes) - least + 1;
  const joints = new Set(graph.nodes.filter((node) => node.kind === "joint").map((node) => node.column)).size;
  const boxes = graph.columns - joints;
  const across = room >= boxes * kBox.w + joints * 10 + (graph.columns - 1) * 44;
  const box = {w: across ? kBox.w : Math.max(86, Math.min(kBox.w, (room - 4) / count - 10)), h: kBox.h};
  const along = across ? box.w : box.h;
  const gap = across ? Math.min(104, (room - 4 - boxes * box.w - joints * 10) / (graph.columns - 1)) : 48;
  const labels = graph.edges.some((edge) => edge.when);
  const pitch = across ? box.h + (labels ? 30 : 16) : box.w + 10;
  const margin = across ? (labels ? 18 : 2) : 2;
  const columns = [];
  let end = 2;
  for (let c = 0; c < graph.columns; ++c) {
    const size = graph.nodes.some((node) => node.column === c && node.kind === "joint") ? 10 : along;
    columns.push(end + size / 2);
    end += size + gap;
  }
  const length = end - gap + 2, breadth = (count - 1) * pitch + (across ? box.h : box.w) + margin + 2;
  for (const node of graph.nodes) {
    const main = columns[node.column], cross = margin + (across ? box.h : box.w) / 2 + (node.lane - least) * pitch;
    [node.x, node.y] = across ? [main, cross] : [cross, main];
    [node.w, node.h] = node.kind === "joint" ? [10, 10] : [box.w, box.h];
  }
  return {across, box, width: across ? length : breadth, height: across ? breadth : length};
}

function pipe(path, value, most) {
  const flows = value > 0;
  const width = flows ? 1.5 + 7 * Math.sqrt(Math.min(1, value / most)) : 1.5;
  return element("svg:path", {class: flows ? "pipe" : "pipe dry", d: path, "stroke-width": width.toFixed(1)});
}

function drawNode(node, {across, box}) {
  const letters = Math.floor(box.w / 7.4);
  const text = (style, y, words, most = letters) => element("svg:text", {class: style, x: node.x, y, "text-anchor": "middle"}, cut(words, most));
  if (node.kind === "joint") return element("svg:circle", {class: "joint", cx: node.x, cy: node.y, r: 5});
  if (node.kind === "way") return text("when", node.y + (across ? -8 : 4), conditionText(node.title), letters + 4);
  const about = [node.title, node.when, `${rate(node.received)} packets`].filter(Boolean).join(", ");
  const drawn = element("svg:g", {class: node.kind}, element("svg:title", {}, about),
                        element("svg:rect", {class: "box", x: node.x - box.w / 2, y: node.y - box.h / 2, width: box.w, height: box.h, rx: 8}));
  const rows = [["title", node.title], ["sub", node.sub], ["sub", rate(node.received)]];
  if (node.kind !== "port") rows.splice(1, 2, ["sub", `${node.sub}, ${rate(node.received)}`], ...(node.dropped > 0 ? [["drops", `−${rate(node.dropped)}`]] : []));
  rows.forEach(([style, words], i) => drawn.append(text(style, node.y + 5 + 18 * (i - (rows.length - 1) / 2), words)));
  if (node.when) drawn.append(text("when", node.y - box.h / 2 - 6, conditionText(node.when), letters + 4));
  return drawn;
}

function drawChain(now) {
  const graph = chainGraph(now);
  for (const edge of graph.edges) if (edge.when) edge.to.when = edge.when;
  const plan = lay(graph, byId("picture").clientWidth - 12);
  const {across} = plan, parts = [], rates = [];
  for (const {from, to, value} of graph.edges) {
    const [x1, y1] = across ? [from.x + from.w / 2, from.y] : [from.x, from.y + from.h / 2];
    const [x2, y2] = across ? [to.x - to.w / 2, to.y] : [to.x, to.y - to.h / 2];
    const [x, y] = [(x1 + x2) / 2, (y1 + y2) / 2];
    parts.push(pipe(across ? `M${x1} ${y1} C${x} ${y1} ${x} ${y2} ${x2} ${y2}` : `M${x1} ${y1} C${x1} ${y} ${x2} ${y} ${x2} ${y2}`, value, graph.most));
    // Where a pipe stands alone, its rate. Boxes have theirs.
    const alone = graph.edges.filter((other) => other.from === from || other.to === to).length === 1;
    if (alone && from.kind !== "port" && to.kind !== "port" && from.kind !== "joint" && to.kind !== "joint")
      rates.push(element("svg:text", across ? {class: "rate", x, y: y - 9, "text-anchor": "middle"} : {class: "rate", x: x + 9, y: y + 4}, rate(value)));
  }
  for (const node of graph.nodes) {
    if (node.kind !== "way") continue;
    const value = graph.edges.find((edge) => edge.to === node).value;
    parts.push(pipe(across ? `M${node.x - node.w / 2} ${node.y} h${node.w}` : `M${node.x} ${node.y - node.h / 2} v${node.h}`, value, graph.most));
  }
  const text = graph.nodes.filter((node) => node.received !== undefined).map((node) =>
      [node.title, node.when ? `(${conditionText(node.when)})` : "", rate(node.received), node.dropped > 0 ? `drops ${rate(node.dropped)}` : ""].filter(Boolean).join(" "));
  show("picture", element("svg:svg", {width: plan.width, height: plan.height, viewBox: `0 0 ${plan.width} ${plan.height}`, role: "img", "aria-label": text.join("; ")},
                          ...parts, ...rates, ...graph.nodes.map((node) => drawNode(node, plan))));
}

// ---- the loop

function showAnswer(now) {
  showHead(now);
  if (!now.report) return;
  showFigures();
  drawChain(now);
  showDrops(now);
  showWorkers(now);
  showGpu(now);
  showTop("alerts", "alert-list", "top_alerts", now);
  showTop("rules", "rule-list", "top_rules", now);
  showTables(now);
  showNotes(now);
}

function noteSilence() {
  const silent = performance.now() - heard > kPatience;
  document.body.classList.toggle("silent", silent);
  byId("silence").hidden = !silent;
  if (!silent) return;
  const since = new Date(Date.now() - (performance.now() - heard)).toLocaleTimeString();
  const text = `The run has not answered since ${since}. It may have ended. What you see is from then.`;
  if (byId("silence").textContent !== text) byId("silence").textContent = text;
  byId("state").textContent = "no answer";
  byId("state").dataset.state = "silent";
  document.title = "No answer – Penstock";
}

/** null: there was no answer. */
async function answer() {
  try {
    const response = await fetch("/api/status", {cache: "no-store", signal: AbortSignal.timeout(3000)});
    return response.ok ? await response.json() : null;
  } catch {
    return null;
  }
}

function take(now) {
  // Another run listens here now, or this one begins: what was before does not count.
  if (answers.length > 0 && (now.started !== answers.at(-1).started || !answers.at(-1).report)) answers.length = 0;
  answers.push(now);
  while (answers.length > 2 && now.elapsed_s - answers[1].elapsed_s >= kWindow) answers.shift();
  heard = performance.now();
  byId("updated").textContent = `Updated ${new Date().toLocaleTimeString()}`;
}

async function ask() {
  try {
    const now = await answer();
    if (now) {
      take(now);
      showAnswer(now);
    }
    noteSilence();
  } finally {
    setTimeout(ask, kEvery);
  }
}

new ResizeObserver(() => { if (answers.at(-1)?.report) drawChain(answers.at(-1)); }).observe(byId("picture"));
setInterval(noteSilence, 500);
ask();
