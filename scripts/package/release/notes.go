package release

import (
	"fmt"
	"regexp"
	"strings"
)

// section matches the heading of a release in a changelog, with its version.
var section = regexp.MustCompile(`(?m)^## \[(\d[^]]*)\] - \d{4}-\d{2}-\d{2}\n`)

// Newest returns the newest release of a changelog, or 0.0.0 if there is none yet.
func Newest(changelog string) string {
	if match := section.FindStringSubmatch(changelog); match != nil {
		return match[1]
	}
	return "0.0.0"
}

// Notes returns what a changelog says about its newest release. It returns an error
// unless that release, the version of the source and the tag agree. links is the address
// of the root, for links to documents.
func Notes(changelog, version, tag, links string) (string, error) {
	if newest := Newest(changelog); newest != version || tag != "v"+version {
		return "", fmt.Errorf(
			"tag %q, version %s in adapters/config/version.go, and %s at the top of CHANGELOG.md: want one release",
			tag, version, newest)
	}
	sections := section.FindAllStringIndex(changelog, 2)
	if len(sections) == 0 {
		return "", fmt.Errorf("CHANGELOG.md has no section of version %s", version)
	}
	end := len(changelog)
	if len(sections) > 1 {
		end = sections[1][0]
	}
	text := strings.TrimSpace(changelog[sections[0][1]:end]) + "\n"
	return strings.ReplaceAll(text, "](docs/", "]("+links+"/docs/"), nil
}
