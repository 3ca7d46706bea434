(function () {
  "use strict";
  var root = document.documentElement;

  // Theme: the system's, until the button says otherwise.
  var button = document.getElementById("theme");
  function dark() {
    var chosen = root.getAttribute("data-theme");
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }
  function name() { button.textContent = dark() ? "Light theme" : "Dark theme"; }
  button.addEventListener("click", function () {
    root.setAttribute("data-theme", dark() ? "light" : "dark");
    name();
  });
  button.hidden = false;
  name();

  // Values of marks: on hover, on touch, and with the arrow keys on a focused chart.
  var tip = document.getElementById("tip");
  function show(mark) {
    hide();
    mark.classList.add("active");
    tip.textContent = mark.getAttribute("data-tip");
    place();
  }
  function place() {
    var mark = document.querySelector(".mark.active");
    if (!mark) { return; }
    var box = mark.getBoundingClientRect();
    var left = box.left + box.width / 2 - tip.offsetWidth / 2;
    var top = box.top - tip.offsetHeight - 6;
    tip.style.left = Math.max(6, Math.min(left, root.clientWidth - tip.offsetWidth - 6)) + "px";
    tip.style.top = (top < 4 ? box.bottom + 6 : top) + "px";
  }
  function hide() {
    tip.textContent = "";
    document.querySelectorAll(".mark.active").forEach(function (mark) {
      mark.classList.remove("active");
    });
  }
  document.querySelectorAll("svg[role=img]").forEach(function (svg) {
    var marks = Array.prototype.slice.call(svg.querySelectorAll(".mark"));
    var at = -1;
    svg.addEventListener("pointerover", function (event) {
      if (event.target.classList.contains("mark")) { show(event.target); } else { hide(); }
    });
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", function () { at = -1; hide(); });
    svg.addEventListener("keydown", function (event) {
      var step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") { hide(); }
      if (!step || !marks.length) { return; }
      event.preventDefault();
      at = at < 0 ? (step > 0 ? 0 : marks.length - 1) : (at + step + marks.length) % marks.length;
      show(marks[at]);
    });
  });
  // Focus by Tab scrolls the chart into view after the first key may have come: follow, don't hide.
  addEventListener("scroll", place, { passive: true });

  // The table of flagged rows: one page at a time, sorted and filtered, and as a CSV file.
  var table = document.getElementById("rows");
  if (!table) { return; }
  var all = JSON.parse(document.getElementById("data").textContent);
  var body = table.tBodies[0];
  var heads = Array.prototype.slice.call(table.tHead.rows[0].cells);
  var labelled = heads.some(function (head) { return head.getAttribute("data-key") === "label"; });
  // As many rows as two or three screens hold.
  var PAGE = matchMedia("(max-width: 640px)").matches ? 10 : 25, page = 0, rows = all.slice();
  var text = document.getElementById("filter-text");
  var view = document.getElementById("filter-view");
  function make(tag, css, content) {
    var element = document.createElement(tag);
    if (css) { element.className = css; }
    if (content !== undefined) { element.textContent = content; }
    return element;
  }
  function number(value, digits, exact) {
    if (value === null) { return ""; }
    if (!exact) { return value.toFixed(digits); }
    var short = value.toPrecision(digits);  // 0.00033, and 1.2e-7
    return Math.abs(value) >= 1e-4 ? String(parseFloat(short)) : parseFloat(short).toExponential();
  }
  function reasons(row) {
    var list = make("ul", "cols");
    row.why.slice(0, 2).forEach(function (why) {
      var item = make("li"), words = make("span", "words");
      words.appendChild(make("b", "", why[0]));
      words.appendChild(document.createTextNode(why[4].slice(why[0].length)));
      item.appendChild(words);
      if (why.length > 5) {
        var gauge = make("span", "gauge"), usual = make("i"), at = make("s");
        gauge.setAttribute("aria-hidden", "true");
        usual.style.left = why[5] + "%";
        usual.style.width = why[6] + "%";
        at.style.left = why[7] + "%";
        gauge.appendChild(usual);
        gauge.appendChild(at);
        item.appendChild(gauge);
      }
      list.appendChild(item);
    });
    if (!row.why.length) {
      row.views.forEach(function (v) {
        var item = make("li"), words = make("span", "words");
        words.appendChild(make("b", "", v[0]));
        words.appendChild(document.createTextNode(" " + v[1]));
        item.appendChild(words);
        list.appendChild(item);
      });
    }
    return list;
  }
  function whole(row) {
    var details = make("details", "whole"), list = make("dl");
    details.appendChild(make("summary", "", "Whole row"));
    row.cells.forEach(function (cell) {
      list.appendChild(make("dt", "", cell[0]));
      list.appendChild(make("dd", "", cell[1]));
    });
    details.appendChild(list);
    return details;
  }
  function line(row) {
    var tr = make("tr");
    tr.appendChild(make("td", "", row.name));
    tr.appendChild(make("td", "number", number(row.score, 3)));
    tr.appendChild(make("td", "number pvalue", number(row.p, 2, true)));
    if (labelled) { tr.appendChild(make("td", "", row.label)); }
    var why = make("td");
    why.appendChild(reasons(row));
    if (row.remarks) { why.appendChild(make("small", "soft", row.remarks)); }
    why.appendChild(whole(row));
    tr.appendChild(why);
    return tr;
  }
  function show_rows() {
    var pages = Math.max(1, Math.ceil(rows.length / PAGE));
    page = Math.max(0, Math.min(page, pages - 1));
    body.textContent = "";
    rows.slice(page * PAGE, (page + 1) * PAGE).forEach(function (row) {
      body.appendChild(line(row));
    });
    document.getElementById("shown").textContent =
      rows.length + " of " + all.length + " listed rows.";
    document.getElementById("pager").hidden = pages === 1;
    document.getElementById("place").textContent = "Page " + (page + 1) + " of " + pages;
    document.getElementById("before").disabled = page === 0;
    document.getElementById("after").disabled = page === pages - 1;
  }
  function sort() {
    var head = heads.filter(function (h) { return h.hasAttribute("aria-sort"); })[0];
    if (!head) { return; }
    var key = head.getAttribute("data-key");
    var up = head.getAttribute("aria-sort") === "ascending" ? 1 : -1;
    rows.sort(function (a, b) {
      var x = a[key], y = b[key];
      if (x === null || y === null) { return (x === null) - (y === null); }
      return up * (typeof x === "number" ? x - y
        : x.localeCompare(y, undefined, { numeric: true }));
    });
  }
  function filter() {
    var wanted = text.value.trim().toLowerCase();
    rows = all.filter(function (row) {
      var said = [row.name, row.remarks, row.label || "", row.view];
      row.why.forEach(function (why) { said.push(why[4]); });
      return (!wanted || said.join(" ").toLowerCase().indexOf(wanted) >= 0)
        && (!view || !view.value || row.view === view.value);
    });
    sort();
    page = 0;
    show_rows();
  }
  heads.forEach(function (head) {
    var sorter = head.querySelector("button");
    if (!sorter) { return; }
    sorter.addEventListener("click", function () {
      var up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      sort();
      page = 0;
      show_rows();
    });
  });
  [text, view].forEach(function (control) {
    if (control) { control.addEventListener("input", filter); }
  });
  function turn(step) {
    return function () {
      page += step;
      show_rows();
      document.getElementById("rows-title").scrollIntoView();
    };
  }
  document.getElementById("before").addEventListener("click", turn(-1));
  document.getElementById("after").addEventListener("click", turn(1));
  // Spreadsheets run cells that begin like a formula: an apostrophe keeps them text.
  function cell(value) {
    var said = value === null || value === undefined ? "" : String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(said) && isNaN(Number(said))) {
      said = "'" + said;
    }
    return /[",\r\n]/.test(said) ? '"' + said.replace(/"/g, '""') + '"' : said;
  }
  function csv() {
    var most = Math.max.apply(null, all.map(function (row) { return row.why.length; }).concat(0));
    var head = ["row", "score", "p_value", "view", "remarks"];
    for (var k = 1; k <= most; k++) {
      head.push("column_" + k, "value_" + k, "low_" + k, "high_" + k);
    }
    var lines = [head.join(",")];
    rows.forEach(function (row) {
      var cells = [row.name, row.score, row.p, row.view, row.remarks];
      for (var k = 0; k < most; k++) {
        cells = cells.concat(row.why[k] ? row.why[k].slice(0, 4) : ["", "", "", ""]);
      }
      lines.push(cells.map(cell).join(","));
    });
    return lines.join("\n") + "\n";
  }
  document.getElementById("download").addEventListener("click", function () {
    var link = make("a");
    link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv;charset=utf-8" }));
    link.download = "findings.csv";
    document.body.appendChild(link);
    link.click();
    link.remove();
    URL.revokeObjectURL(link.href);
  });
  document.getElementById("controls").hidden = false;
  show_rows();
})();
