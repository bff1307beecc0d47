import { expect, test } from "bun:test";
import { csvOf } from "../../../src/dashboard/app/csv.ts";

test("what CSV would take apart stands in quotes, and no cell is a formula", () => {
  const rows = [
    { id: "1", text: 'says "no", twice' },
    { id: "2", text: "a\nb" },
    { id: "3", text: "=HYPERLINK(1)" },
    { id: "4", text: "-1,5" },
  ];
  expect(csvOf(rows)).toBe('id,text\r\n1,"says ""no"", twice"\r\n2,"a\nb"\r\n3,\'=HYPERLINK(1)\r\n4,"\'-1,5"\r\n');
  expect(csvOf([])).toBe("\r\n");
});
