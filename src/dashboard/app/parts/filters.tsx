/**
 * Filters of a list. They live in the URL, so that a link shows what one sees.
 *
 * @module
 */
import type { ComponentChildren } from "preact";
import { useLocation } from "preact-iso";
import { useDraft } from "./draft.ts";
import { localTime } from "./time.tsx";

export interface FiltersInUrl {
  /** Those that are set. */
  readonly values: Readonly<Partial<Record<string, string>>>;
  readonly isSet: boolean;
  /** An empty text takes a filter back. */
  set(changes: Readonly<Record<string, string>>): void;
}

/** @param screen - its path below that of the dashboard */
export function useFilters(screen: string, names: readonly string[]): FiltersInUrl {
  const { query, route } = useLocation();
  const values = Object.fromEntries(names.flatMap((name) => (query[name] ? [[name, query[name]]] : [])));
  return {
    values,
    isSet: Object.keys(values).length > 0,
    set(changes) {
      const next = Object.entries({ ...query, ...changes }).filter(([, value]) => value !== "");
      const search = new URLSearchParams(next).toString();
      route(`/dashboard/${screen}${search === "" ? "" : `?${search}`}`, true);
    },
  };
}

export function Filters({ filters, children }: { filters: FiltersInUrl; children: ComponentChildren }) {
  const none = () => filters.set(Object.fromEntries(Object.keys(filters.values).map((name) => [name, ""])));
  return (
    <form class="filters" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      {children}
      {filters.isSet && (
        <button type="button" onClick={none}>
          Clear
        </button>
      )}
    </form>
  );
}

interface FilterProps {
  label: string;
  name: string;
  filters: FiltersInUrl;
}

/** Takes effect when one leaves the field or presses Enter: every letter of an id would be a request. */
export function TextFilter({ label, name, filters, placeholder }: FilterProps & { placeholder?: string }) {
  const text = useDraft(filters.values[name] ?? "");
  return (
    <label>
      {label}
      <input
        name={name}
        placeholder={placeholder}
        value={text}
        onInput={({ currentTarget }) => (text.value = currentTarget.value)}
        onChange={() => filters.set({ [name]: text.value.trim() })}
      />
    </label>
  );
}

export function ChoiceFilter({ label, name, filters, choices, any = "any" }: FilterProps & { choices: readonly string[]; any?: string }) {
  return (
    <label>
      {label}
      <select name={name} value={filters.values[name] ?? ""} onChange={({ currentTarget }) => filters.set({ [name]: currentTarget.value })}>
        <option value="">{any}</option>
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Local time in the field, UTC in the URL and for the API. */
export function TimeFilter({ label, name, filters }: FilterProps) {
  const at = filters.values[name];
  const set = ({ value }: HTMLInputElement) => {
    const time = new Date(value).getTime();
    filters.set({ [name]: Number.isNaN(time) ? "" : new Date(time).toISOString() });
  };
  return (
    <label>
      {label}
      <input
        type="datetime-local"
        name={name}
        value={at === undefined ? "" : localTime(at)}
        onChange={({ currentTarget }) => set(currentTarget)}
      />
    </label>
  );
}
