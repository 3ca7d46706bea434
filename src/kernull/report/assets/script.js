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

  // The table of rows: sorting and filtering.
  var table = document.getElementById("rows");
  if (!table) { return; }
  var body = table.tBodies[0];
  var rows = Array.prototype.slice.call(body.rows);
  var heads = table.tHead.rows[0].cells;
  Array.prototype.forEach.call(heads, function (head, column) {
    var sorter = head.querySelector("button");
    if (!sorter) { return; }
    sorter.addEventListener("click", function () {
      var up = head.getAttribute("aria-sort") !== "ascending";
      Array.prototype.forEach.call(heads, function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      var number = head.classList.contains("number");
      rows.sort(function (a, b) {
        var x = a.cells[column].getAttribute("data-key");
        var y = b.cells[column].getAttribute("data-key");
        var order = number ? parseFloat(x) - parseFloat(y)
          : x.localeCompare(y, undefined, { numeric: true });
        return up ? order : -order;
      });
      rows.forEach(function (row) { body.appendChild(row); });
    });
  });
  var text = document.getElementById("filter-text");
  var verdict = document.getElementById("filter-verdict");
  var view = document.getElementById("filter-view");
  var shown = document.getElementById("shown");
  function filter() {
    var wanted = text.value.trim().toLowerCase();
    var count = 0;
    rows.forEach(function (row) {
      var keep = (!wanted || row.textContent.toLowerCase().indexOf(wanted) >= 0)
        && (!verdict.value || row.getAttribute("data-verdict") === verdict.value)
        && (!view || !view.value || row.getAttribute("data-view") === view.value);
      row.hidden = !keep;
      count += keep ? 1 : 0;
    });
    shown.textContent = "Showing " + count + " of " + rows.length + " listed rows.";
  }
  [text, verdict, view].forEach(function (control) {
    if (control) { control.addEventListener("input", filter); }
  });
  document.getElementById("controls").hidden = false;
  filter();
})();
