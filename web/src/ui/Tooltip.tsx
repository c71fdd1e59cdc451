import {
  cloneElement,
  type FocusEvent,
  type HTMLAttributes,
  type KeyboardEvent,
  type PointerEvent,
  type ReactElement,
  type ReactNode,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { createPortal } from "react-dom";
import { place, type Side } from "./place.ts";

const wait = 350; // ms under the pointer before it shows
const linger = 120; // ms after the pointer left, so that the words can be reached

type Props = HTMLAttributes<HTMLElement>;

/**
 * Tooltip says more about one element, to pointer and keyboard alike; without text it is silent. The element stays
 * where it is in the tree, and so keeps its focus.
 */
export function Tooltip({
  text,
  children,
  side = "top",
}: {
  text: ReactNode;
  children: ReactElement<Props>;
  side?: Side;
}) {
  const id = useId();
  const [about, setAbout] = useState<Element | null>(null);
  const pressed = useRef(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const after = (ms: number, next: Element | null) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setAbout(next), ms);
  };
  const hide = () => after(0, null);
  const given = children.props;
  const trigger = cloneElement(children, {
    ...(about && text && { "aria-describedby": id }),
    onPointerEnter: (event: PointerEvent<HTMLElement>) => {
      given.onPointerEnter?.(event);
      if (event.pointerType !== "touch") after(wait, event.currentTarget);
    },
    onPointerLeave: (event: PointerEvent<HTMLElement>) => {
      given.onPointerLeave?.(event);
      after(linger, null);
    },
    onPointerDown: (event: PointerEvent<HTMLElement>) => {
      given.onPointerDown?.(event);
      pressed.current = true; // the focus that follows is the pointer's, not the keyboard's
      hide();
    },
    onFocus: (event: FocusEvent<HTMLElement>) => {
      given.onFocus?.(event);
      if (!pressed.current) after(0, event.currentTarget);
      pressed.current = false;
    },
    onBlur: (event: FocusEvent<HTMLElement>) => {
      given.onBlur?.(event);
      pressed.current = false;
      hide();
    },
    onKeyDown: (event: KeyboardEvent<HTMLElement>) => {
      given.onKeyDown?.(event);
      if (event.key === "Escape") hide();
    },
  });
  return (
    <>
      {trigger}
      {about &&
        text &&
        createPortal(
          <Box id={id} about={about} side={side} stay={() => after(0, about)} leave={() => after(linger, null)}>
            {text}
          </Box>,
          document.body,
        )}
    </>
  );
}

interface BoxProps {
  id: string;
  about: Element;
  side: Side;
  children: ReactNode;
  stay: () => void;
  leave: () => void;
}

function Box({ id, about, side, children, stay, leave }: BoxProps) {
  const box = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<{ left: number; top: number } | null>(null);
  useLayoutEffect(() => {
    if (!box.current) return;
    const { width, height } = box.current.getBoundingClientRect();
    setAt(place(about.getBoundingClientRect(), { width, height }, side, { width: innerWidth, height: innerHeight }));
  }, [about, side]);
  // Scrolled away from what it is about, it would point at something else.
  useEffect(() => {
    addEventListener("scroll", leave, { capture: true, passive: true });
    return () => removeEventListener("scroll", leave, { capture: true });
  });
  return (
    <div
      ref={box}
      id={id}
      role="tooltip"
      onPointerEnter={stay}
      onPointerLeave={leave}
      style={at ?? { left: 0, top: 0, visibility: "hidden" }}
      className="fixed z-60 max-w-72 animate-[fade_120ms] rounded-md bg-ink px-2.5 py-1.5 text-[13px] leading-snug text-bg shadow-lift"
    >
      {children}
    </div>
  );
}
