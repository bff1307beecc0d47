/**
 * A table with its head.
 *
 * @module
 */
import type { ComponentChildren } from "preact";

interface TableProps {
  columns: readonly Column[];
  class?: string;
  /** Its bodies. */
  children: ComponentChildren;
}

/** The name of a column; one that is `hidden` is for those who hear the table. */
type Column = string | { readonly name: string; readonly kind: "number" | "hidden" };

export function Table({ columns, class: name, children }: TableProps) {
  return (
    <div class="table">
      <table class={name}>
        <thead>
          <tr>
            {columns.map((column, index) => (
              <Head key={index} column={typeof column === "string" ? { name: column } : column} />
            ))}
          </tr>
        </thead>
        {children}
      </table>
    </div>
  );
}

function Head({ column: { name, kind } }: { column: { name: string; kind?: "number" | "hidden" } }) {
  return (
    <th scope="col" class={kind === "number" ? "number" : undefined}>
      {kind === "hidden" ? <span class="offscreen">{name}</span> : name}
    </th>
  );
}
