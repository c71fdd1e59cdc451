const again = 1000;
const longestSilence = 10_000;

/**
 * untilLoaded loads a part of the editor, and waits for the server if that is away: an error would replace the page,
 * with what somebody has typed in it. It fails if the server is there and does not have the part, as after an upgrade.
 */
export async function untilLoaded<T>(load: () => Promise<T>): Promise<T> {
  for (let there = false; ; ) {
    try {
      return await load();
    } catch (error) {
      if (there) throw error;
      await new Promise((resolve) => setTimeout(resolve, again));
      there = await serverAnswers();
    }
  }
}

function serverAnswers(): Promise<boolean> {
  return fetch("/api/health", { cache: "no-store", signal: AbortSignal.timeout(longestSilence) }).then(
    (response) => response.ok,
    () => false,
  );
}
