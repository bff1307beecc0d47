/**
 * A table with its head. On a phone one that is `stacked` has a card for each row, in which each cell stands with the name of its column.
 *
 * @module
 */
import type { ComponentChildren } from "preact";

interface CellProps {
  /** The name of its column, for the card; none for what says by itself what it is. */
  name?: string;
  class?: string;
  title?: string | undefined;
  children: ComponentChildren;
}

/** A cell of a table that is stacked. Its role is named, since it is laid out as no cell is. */
export function Cell({ name, class: className, title, children }: CellProps) {
  return (
    <td role="cell" data-name={name} class={className} title={title}>
      {children}
    </td>
  );
}

interface TableProps {
  columns: readonly Column[];
  class?: string;
  stacked?: boolean;
  /** Its bodies. */
  children: ComponentChildren;
}

interface NamedColumn {
  readonly name: string;
  /** One that is `hidden` is for those who hear the table. */
  readonly kind?: "number" | "hidden";
  readonly sorted?: "ascending" | "descending" | "none";
  /** Sorts by it, or the other way round. */
  readonly onSort?: () => void;
}

type Column = string | NamedColumn;

export function Table({ columns, class: name, stacked = false, children }: TableProps) {
  return (
    <div class={stacked ? "table stacked" : "table"}>
      <table class={name} role={stacked ? "table" : undefined}>
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

function Head({ column: { name, kind, sorted, onSort } }: { column: NamedColumn }) {
  return (
    <th scope="col" class={kind === "number" ? "number" : undefined} aria-sort={sorted}>
      {onSort !== undefined ? (
        <button class="sort" onClick={onSort}>
          {name}
        </button>
      ) : kind === "hidden" ? (
        <span class="offscreen">{name}</span>
      ) : (
        name
      )}
    </th>
  );
}
