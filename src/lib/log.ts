/**
 * The operator's log: one JSON object a line on standard error, or plain lines on a terminal.
 *
 * Fields are names and numbers, never bodies, contents, keys or secrets.
 *
 * @module
 */
import { toIso } from "./time.ts";

export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogFields = Record<string, string | number | boolean | null | undefined>;

export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  enabled(level: LogLevel): boolean;
}

export function createLog(options: {
  level: LogLevel;
  pretty: boolean;
  now: () => number;
  write: (line: string, level: LogLevel) => void;
}): Log {
  const shown = new Set<LogLevel>(LOG_LEVELS.slice(LOG_LEVELS.indexOf(options.level)));
  const enabled = (level: LogLevel) => shown.has(level);
  const line = (level: LogLevel, message: string, fields: LogFields): string => {
    const time = toIso(options.now());
    if (!options.pretty) {
      // One for each request: concatenating is cheaper than an object of all fields.
      const rest = JSON.stringify(fields).slice(1);
      return `{"time":"${time}","level":"${level}","message":${JSON.stringify(message)}${rest === "}" ? "" : ","}${rest}`;
    }
    const texts = Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${JSON.stringify(value)}`]));
    return [time.slice(11, 23), level.padEnd(5), message, ...texts].join(" ");
  };
  const at =
    (level: LogLevel) =>
    (message: string, fields: LogFields = {}) => {
      if (enabled(level)) options.write(`${line(level, message, fields)}\n`, level);
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error"), enabled };
}

/** Buffers lines until `later` calls back or the process ends; a warning or an error flushes at once. */
export function bufferedWriter(
  write: (lines: string) => void,
  later: (flush: () => void) => void,
): (line: string, level: LogLevel) => void {
  let lines = "";
  const flush = () => {
    if (lines !== "") write(lines);
    lines = "";
  };
  process.once("exit", flush);
  return (line, level) => {
    if (lines === "") later(flush);
    lines += line;
    if (level === "warn" || level === "error") flush();
  };
}

/** The message of a thrown value, with its causes. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : ` (cause: ${describeError(error.cause)})`;
  return `${error.name}: ${error.message}${cause}`;
}
