/**
 * One of a few, all of them visible: a group of buttons.
 *
 * @module
 */

interface ChoicesProps {
  label: string;
  value: string;
  /** Names by value. */
  choices: Readonly<Record<string, string>>;
  onChoice: (value: string) => void;
}

export function Choices({ label, value, choices, onChoice }: ChoicesProps) {
  return (
    <div class="choices" role="group" aria-label={label}>
      {Object.entries(choices).map(([one, name]) => (
        <button key={one} type="button" class="small" aria-pressed={one === value} onClick={() => onChoice(one)}>
          {name}
        </button>
      ))}
    </div>
  );
}
