/** save hands the browser a file that was made here. */
export function save(name: string, content: BlobPart, type: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name.replaceAll(/[/\\]/g, "-");
  link.click();
  // Firefox starts the download after the click has returned.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
