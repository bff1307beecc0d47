/**
 * Records as CSV, for spreadsheets.
 *
 * @module
 */

/** Spreadsheets take a text that begins with one of these for a formula. */
const FORMULA = /^[=+\-@\t\r]/;

export function csvOf(rows: readonly Readonly<Record<string, string>>[]): string {
  const names = Object.keys(rows[0] ?? {});
  return [names, ...rows.map((row) => names.map((name) => row[name] ?? ""))].map((cells) => `${cells.map(cell).join(",")}\r\n`).join("");
}

function cell(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
