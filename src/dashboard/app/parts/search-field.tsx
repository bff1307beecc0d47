/**
 * The field of a screen that searches. It searches on Enter: every letter would be a request.
 *
 * @module
 */
import { useDraft } from "./draft.ts";

interface SearchFieldProps {
  text: string;
  label: string;
  placeholder?: string;
  onSearch: (text: string) => void;
}

export function SearchField({ text, label, placeholder = label, onSearch }: SearchFieldProps) {
  const written = useDraft(text);
  const search = (event: SubmitEvent) => {
    event.preventDefault();
    onSearch(written.value.trim());
  };
  return (
    <form class="search" role="search" onSubmit={search}>
      <input
        type="search"
        name="q"
        aria-label={label}
        placeholder={placeholder}
        value={written}
        onInput={({ currentTarget }) => (written.value = currentTarget.value)}
      />
      <button class="primary">Search</button>
    </form>
  );
}
