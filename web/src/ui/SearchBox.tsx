import { Search } from "lucide-react";
import { classes } from "./classes.ts";
import { Input } from "./Field.tsx";

interface SearchBoxProps {
  label: string;
  placeholder: string;
  value: string;
  onChange: (value: string) => void;
  className?: string;
}

/** SearchBox narrows a list by words. */
export function SearchBox({ label, placeholder, value, onChange, className }: SearchBoxProps) {
  return (
    <div className={classes("relative", className)}>
      <Search className="pointer-events-none absolute top-2.75 left-3 size-4 text-muted" aria-hidden />
      <Input
        type="search"
        aria-label={label}
        placeholder={placeholder}
        className="pl-9"
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </div>
  );
}
