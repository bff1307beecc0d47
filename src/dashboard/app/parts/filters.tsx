/**
 * Filters of a list. They live in the URL, so that a link shows what one sees.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLocation } from "preact-iso";
import { useId } from "preact/hooks";
import { boundTo, useMe } from "../access.ts";
import { api } from "../api.ts";
import { useQuery } from "../query.ts";
import { useDraft } from "./draft.ts";
import { Field } from "./form.tsx";
import { parsedObject } from "./json.tsx";
import { localTime } from "./time.tsx";

export interface FiltersInUrl {
  /** Filters that are set. */
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

interface FiltersProps {
  filters: FiltersInUrl;
  /** True if some of them are texts, which are to be finished and spelt as they are stored. */
  hasTexts?: boolean;
  children: ComponentChildren;
}

export function Filters({ filters, hasTexts = true, children }: FiltersProps) {
  const none = () => filters.set(Object.fromEntries(Object.keys(filters.values).map((name) => [name, ""])));
  return (
    <form class="filters" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      {children}
      {filters.isSet && (
        <button type="button" onClick={none}>
          Clear
        </button>
      )}
      {hasTexts && <p class="hint quiet">Texts have to match exactly. They apply on Enter, or when you leave the field.</p>}
    </form>
  );
}

interface FilterProps {
  label: string;
  name: string;
  filters: FiltersInUrl;
}

interface TextFilterProps extends FilterProps {
  placeholder?: string;
  /** Usual values; anything else can be written too. */
  suggestions?: readonly string[];
  onFocus?: () => void;
}

/** Takes effect when one leaves the field or presses Enter: every letter of an id would be a request. */
export function TextFilter({ label, name, filters, placeholder, suggestions = [], onFocus }: TextFilterProps) {
  const text = useDraft(filters.values[name] ?? "");
  const listId = useId();
  return (
    <label>
      {label}
      <input
        name={name}
        placeholder={placeholder}
        autoComplete="off"
        list={listId}
        value={text}
        onFocus={onFocus}
        onInput={({ currentTarget }) => (text.value = currentTarget.value)}
        onChange={() => filters.set({ [name]: text.value.trim() })}
      />
      <datalist id={listId}>
        {suggestions.map((suggestion) => (
          <option key={suggestion} value={suggestion} />
        ))}
      </datalist>
    </label>
  );
}

interface JsonFilterProps extends FilterProps {
  placeholder?: string;
  /** Complaint of the server. */
  fault: string | undefined;
}

/** A JSON object, which takes effect once it is one. */
export function JsonFilter({ label, name, filters, placeholder, fault }: JsonFilterProps) {
  const set = filters.values[name] ?? "";
  const text = useDraft(set);
  const { wrong } = text.value.trim() === "" ? {} : parsedObject(text.value);
  return (
    <Field label={label} name={name} wrong={wrong ?? (text.value === set ? fault : undefined)}>
      {(attributes) => (
        <input
          {...attributes}
          class="code"
          placeholder={placeholder}
          autoComplete="off"
          spellcheck={false}
          value={text}
          onInput={({ currentTarget }) => (text.value = currentTarget.value)}
          onChange={() => wrong === undefined && filters.set({ [name]: text.value.trim() })}
        />
      )}
    </Field>
  );
}

/** A user or an agent, of which the first fifty are suggested, once the field is used. A bound key sees none. */
export function NameFilter({ kind, ...filter }: FilterProps & { kind: "users" | "agents" }) {
  const me = useMe();
  const isUsed = useSignal(false);
  const { data } = useQuery({
    queryKey: [kind, "names"],
    enabled: isUsed.value && me !== undefined && boundTo(me) === null,
    queryFn: ({ signal }) => api.named(kind, {}, signal),
  });
  return <TextFilter {...filter} suggestions={data?.data.map(({ id }) => id) ?? []} onFocus={() => (isUsed.value = true)} />;
}

interface ChoiceFilterProps extends FilterProps {
  /** Label of each, by value. */
  choices: Readonly<Record<string, string>>;
  any?: string;
}

export function ChoiceFilter({ label, name, filters, choices, any = "any" }: ChoiceFilterProps) {
  return (
    <label>
      {label}
      <select name={name} value={filters.values[name] ?? ""} onChange={({ currentTarget }) => filters.set({ [name]: currentTarget.value })}>
        <option value="">{any}</option>
        {Object.entries(choices).map(([choice, says]) => (
          <option key={choice} value={choice}>
            {says}
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
