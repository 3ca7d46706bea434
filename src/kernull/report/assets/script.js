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
  var body = table.tBodies[0];
  var all = Array.prototype.slice.call(body.rows);
  var heads = Array.prototype.slice.call(table.tHead.rows[0].cells);
  // As many rows as two or three screens hold.
  var PAGE = matchMedia("(max-width: 640px)").matches ? 10 : 25, page = 0, rows = all.slice();
  var text = document.getElementById("filter-text");
  var view = document.getElementById("filter-view");
  function show_rows() {
    var pages = Math.max(1, Math.ceil(rows.length / PAGE));
    page = Math.max(0, Math.min(page, pages - 1));
    all.forEach(function (row) { row.hidden = true; });
    rows.slice(page * PAGE, (page + 1) * PAGE).forEach(function (row) {
      row.hidden = false;
      body.appendChild(row);
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
      var x = a.dataset[key], y = b.dataset[key];
      if (x === "" || y === "") { return (x === "") - (y === ""); }
      return up * (isNaN(x) || isNaN(y) ? x.localeCompare(y, undefined, { numeric: true }) : x - y);
    });
  }
  function filter() {
    var wanted = text.value.trim().toLowerCase();
    rows = all.filter(function (row) {
      return (!wanted || row.textContent.toLowerCase().indexOf(wanted) >= 0)
        && (!view || !view.value || row.dataset.view === view.value);
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
    if (/^[=+\-@\t\r]/.test(value) && isNaN(Number(value))) { value = "'" + value; }
    return /[",\r\n]/.test(value) ? '"' + value.replace(/"/g, '""') + '"' : value;
  }
  function csv() {
    return ["row,score,p,view,reasons,remarks"].concat(rows.map(function (row) {
      var words = Array.prototype.map.call(row.querySelectorAll(".words"), function (reason) {
        return reason.textContent;
      });
      var data = row.dataset;
      return [data.name, data.score, data.p, data.view, words.join(" "), data.remarks]
        .map(cell).join(",");
    })).join("\n") + "\n";
  }
  document.getElementById("download").addEventListener("click", function () {
    var link = document.createElement("a");
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
