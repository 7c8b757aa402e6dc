package main

import (
	"fmt"
	"os"
	"strings"
)

// end marks the end of a generated part of a page.
const end = "<!-- end -->"

// fill replaces the parts of a page, each between a comment with its name and end.
func fill(page string, parts map[string]string) (string, error) {
	for name, text := range parts {
		begin := "<!-- generated: " + name + " -->\n"
		before, rest, found := strings.Cut(page, begin)
		_, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			return "", fmt.Errorf("the page has no part between %q and %q", begin, end)
		}
		page = before + begin + "\n" + strings.TrimSpace(text) + "\n\n" + end + after
	}
	return page, nil
}

func rewrite(path string, parts map[string]string) error {
	old, err := os.ReadFile(path) //nolint:gosec // G304: the caller's own path
	if err != nil {
		return err
	}
	page, err := fill(string(old), parts)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.WriteFile(path, []byte(page), 0o600) //nolint:gosec // G703: the caller's own path
}
