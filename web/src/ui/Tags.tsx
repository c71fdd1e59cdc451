/** Tags are words that somebody put on a thing. */
export function Tags({ tags }: { tags: string[] }) {
  return tags.map((tag) => (
    <span key={tag} className="mr-1 inline-block rounded bg-sunken px-1.5 py-px text-[12px] break-all text-muted">
      {tag}
    </span>
  ));
}
