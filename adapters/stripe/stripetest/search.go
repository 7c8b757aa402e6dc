package stripetest

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// searchParams are the metadata of the intents to find.
type searchParams struct {
	account  string
	metadata map[string]string
}

// readSearch parses a query. docs.stripe.com/api/payment_intents/search: query is
// required, limit is 1 to 100.
func readSearch(c *call) *Response {
	if c.Form.Get("query") == "" {
		return invalid("parameter_missing", "query", "Missing required param: query.")
	}
	// The only modeled clause is an exact match of metadata (docs.stripe.com/search,
	// query language).
	clause := regexp.MustCompile(`^metadata\['([^']+)'\]:'([^']*)'$`)
	c.search = searchParams{account: c.account(), metadata: map[string]string{}}
	for part := range strings.SplitSeq(c.Form.Get("query"), " AND ") {
		match := clause.FindStringSubmatch(part)
		if match == nil {
			return invalid("", "query", fmt.Sprintf("Not modeled: this Stripe double searches for "+
				"metadata['name']:'value' joined by AND, got %q.", part))
		}
		c.search.metadata[match[1]] = match[2]
	}
	return nil
}

// find returns the matching intents in the search index, newest first.
// docs.stripe.com/search: "don't use search for read-after-write flows ... data is
// searchable in less than a minute", and later in an outage: Rules.SearchLag.
func (m *Machine) find(now time.Time, p searchParams) *Page {
	page := Page{Search: true}
	for i := len(m.intents) - 1; i >= 0 && len(page.Intents) < 10; i-- {
		intent := m.intents[i]
		visible := now.Sub(intent.Created) >= m.rules.SearchLag
		if visible && intent.Account == p.account && has(intent.Metadata, p.metadata) {
			page.Intents = append(page.Intents, intent)
		}
	}
	return &page
}

func has(metadata, wanted map[string]string) bool {
	for name, value := range wanted {
		if metadata[name] != value {
			return false
		}
	}
	return true
}
