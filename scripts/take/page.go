package main

import (
	"fmt"
	"strings"
)

// listParts is `take parts`.
type listParts struct{}

// Run prints the page of the parts.
func (listParts) Run(s *session) error {
	o, err := openOrigin(s.ctx, s.root)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(s.out, o.parts.page())
	return err
}

// page returns docs/parts.md.
func (c catalog) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Parts

What a project of your own can have:
`+"`make new MODULE=github.com/acme/shop DIR=../shop PARTS=charge,refund`"+`.
Without PARTS it has %s. [The guide](guides/take.md) says what is made, and how it takes a later version.

| part | what it is | what it promises | needs |
|---|---|---|---|
`, strings.Join(c.Default, ", "))
	for _, p := range c.Parts {
		fmt.Fprintf(&b, "| **%s** | [%s](%s) | %s | %s |\n", p.Name, p.Is,
			strings.TrimPrefix("../"+p.Guide, "../docs/"), p.Promises, strings.Join(p.Needs, ", "))
	}
	b.WriteString(`
## What each costs

Lines are what a part adds to a project that has all parts that do not need it, with tests, documents
and Terraform; for ` + "`charge`" + `, the project of it alone. The first of webhook to audit also brings the
operator's tool, settings and fifo: the tool is in no line of this table. Lab and page come together.
Dollars are for a month without an order, in us-east-1 at list prices, with the default alarms
([the calculation](guides/deploy.md#what-it-costs)).

| part | lines | in AWS | dollars |
|---|---:|---|---:|
`)
	for _, p := range c.Parts {
		fmt.Fprintf(&b, "| %s | %s | %s | %.2f |\n", p.Name, thousands(p.Lines), p.AWS, p.Dollars)
	}
	b.WriteString("\nscripts/take/parts.hcl is the list. A test writes this page with UPDATE_PAGES=1.\n")
	return b.String()
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
