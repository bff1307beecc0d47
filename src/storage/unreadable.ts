/**
 * Rows whose text makes no sense, as a failing disk or a wrong program leaves them.
 *
 * A request for such a record is refused, and a list leaves it out: one bad row never hides the others. A failure of the disk is
 * something else, and is thrown through all of this.
 *
 * @module
 */
/** Thrown for a text that is no row of its table. */
export class UnreadableRow extends Error {
  override name = "UnreadableRow";
  readonly table: string;

  constructor(table: string, cause: unknown) {
    super(`a row of ${table} cannot be read`, { cause });
    this.table = table;
  }
}

/** Has a decoder of rows throw `UnreadableRow`, whatever it throws. */
export function rowsOfTable<Row>(table: string, decode: (text: string) => Row): (text: string) => Row {
  return (text) => {
    try {
      return decode(text);
    } catch (error) {
      throw new UnreadableRow(table, error);
    }
  };
}

/** The rows on which all others depend: what cannot be read without one of them is not to be left out. */
const OF_ALL: ReadonlySet<string> = new Set(["provider", "settings"]);

/** Row that is read, or undefined where a row that it needs is unreadable. */
export function unlessUnreadable<Result>(read: () => Result): Result | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof UnreadableRow && !OF_ALL.has(error.table)) return undefined;
    throw error;
  }
}
