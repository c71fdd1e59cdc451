import { Monitor, Moon, Sun } from "lucide-react";
import { chooseTheme, type Theme, useTheme } from "../page/theme.ts";
import { IconButton } from "../ui/Button.tsx";
import { Menu, MenuChoice } from "../ui/Menu.tsx";

const themeIcons: Record<Theme, typeof Sun> = { light: Sun, dark: Moon, system: Monitor };

export function ThemeMenu() {
  const theme = useTheme();
  const Icon = themeIcons[theme];
  return (
    <Menu trigger={<IconButton size="sm" label={`Theme: ${theme}`} icon={<Icon className="size-4" aria-hidden />} />}>
      <MenuChoice
        value={theme}
        onChange={chooseTheme}
        options={[
          { value: "light", label: "Light" },
          { value: "dark", label: "Dark" },
          { value: "system", label: "System" },
        ]}
      />
    </Menu>
  );
}
