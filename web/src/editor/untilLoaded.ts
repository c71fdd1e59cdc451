const again = 1000;

/**
 * untilLoaded loads a part of the editor, however often that takes. An error would replace the page, with what
 * somebody has typed in it, only because the server went away before the part was there.
 */
export async function untilLoaded<T>(load: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await load();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, again));
    }
  }
}
