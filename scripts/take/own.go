package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// own writes what speaks of the project itself, and of its origin.
func own(t tree, o origin, p project, name string) error {
	remembered, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	put := func(path, text string) { t[path] = file{0o644, []byte(text)} }
	put(rememberFile, string(remembered)+"\n")
	// A project has versions of its own: none yet, and the same in each version of the
	// origin, so that an upgrade does not touch them. A test compares both.
	version := regexp.MustCompile(`(const Version = )".+"`)
	put(versionFile, version.ReplaceAllString(string(t[versionFile].data), `$1"0.0.0"`))
	put("CHANGELOG.md", "# Changelog\n\n"+
		"The format is [Keep a Changelog](https://keepachangelog.com/en/1.1.0/); "+
		"versions follow [SemVer](https://semver.org).\n\n## [Unreleased]\n\n- Taken from "+p.Origin+".\n")
	put("NOTICE", fmt.Sprintf("%s\n\n"+
		"This project was taken from %s, Copyright the %[2]s authors, and changed.\n"+
		"LICENSE is the license of %[2]s: Apache-2.0.\n", name, p.Origin))
	put("README.md", readme(o.parts, p, name, t))
	return nil
}

// readme returns the first page of a project.
func readme(c catalog, p project, name string, t tree) string {
	var rows strings.Builder
	for _, part := range c.Parts {
		if !slices.Contains(p.Parts, part.Name) {
			continue
		}
		what := part.Is
		if _, there := t[part.Guide]; there {
			what = fmt.Sprintf("[%s](%s)", what, part.Guide)
		}
		fmt.Fprintf(&rows, "| %s | %s | %s | %.2f |\n", part.Name, what, part.Promises, part.Dollars)
	}
	return fmt.Sprintf(`# %s

**An order on the queue is charged exactly once, and its row says so,
whatever crashes, repeats or arrives late.**

Go, on AWS: Lambda, SQS, DynamoDB; charges by Stripe. What is here:

| part | what | promise | dollars a month when idle |
|---|---|---|---:|
%s
## Run it

%[3]ssh
# takes minutes, and make deploy needs an AWS account
make run     # the functions' real binaries on this machine, with a kill: no account, no credentials
make test    # every test; a skipped one fails
make lint tf # what CI checks beside that
make deploy  # into your AWS account: docs/guides/deploy.md
%[3]s

You need Go, make and npm; for make tf and make deploy Terraform.

## Change it

[The documents by reader](docs/README.md), and [the rules of the house](AGENTS.md), each with the
test that holds it.

## Keep it up to date

This project was taken from %[4]s. %[5]smake upgrade FROM=path-or-URL%[5]s merges a later version of it:
what you changed stays, and where both changed the same lines you get an ordinary conflict. The
branch %[5]s%[4]s%[5]s has what was taken; leave it to the command. Add PARTS=... to have other parts
from then on.
`, name, rows.String(), "```", p.Origin, "`")
}
