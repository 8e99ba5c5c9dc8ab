// Escape closes the drawers of small screens, as a click beside them does.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  document.querySelectorAll(".sidebar-toggle:checked").forEach((toggle) => { toggle.checked = false; toggle.focus(); });
});
