package batch

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"orderonce/domain/order"
	"orderonce/scripts/jobs"
)

// maxMessage is the largest message of SQS, in bytes.
const maxMessage = 1 << 20

// maxShown is how many invalid lines an error names.
const maxShown = 20

// Validate returns an error that names every line that the function would park.
func Validate(file string, messages []Message) error {
	var invalid []string
	for _, m := range messages {
		if m.invalid != nil {
			invalid = append(invalid, fmt.Sprintf("\n  %s:%d: %v", file, m.line, m.invalid))
		}
	}
	if len(invalid) == 0 {
		return nil
	}
	if !isJSONLines(messages) {
		return fmt.Errorf("nothing posted: %s: not JSON lines: want one order per line: "+
			"jq -c . makes one line of each order, jq -c '.[]' of each in an array", file)
	}
	shown := strings.Join(invalid[:min(len(invalid), maxShown)], "")
	if more := len(invalid) - maxShown; more > 0 {
		shown += fmt.Sprintf("\n  and %d more", more)
	}
	return fmt.Errorf("nothing posted: %d of %d messages are invalid orders:%s\n"+
		"correct them, or post all with --allow-invalid: the function parks invalid orders",
		len(invalid), len(messages), shown)
}

// Sums counts what messages ask for: orders and their sum by currency, refunds, and what
// the function would park.
func Sums(messages []Message) string {
	orders, sums, refunds, invalid := map[order.Currency]int{}, map[order.Currency]int64{}, 0, 0
	for _, m := range messages {
		switch total := m.Order.Total(); {
		case m.invalid != nil:
			invalid++
		case m.IsRefund():
			refunds++
		default:
			orders[total.Currency]++
			sums[total.Currency] += total.Amount
		}
	}
	var b strings.Builder
	for _, currency := range slices.Sorted(maps.Keys(orders)) {
		sum := order.Money{Amount: sums[currency], Currency: currency}
		fmt.Fprintf(&b, "orders   %6d, which charge %s\n", orders[currency], sum)
	}
	if refunds > 0 {
		fmt.Fprintf(&b, "refunds  %6d\n", refunds)
	}
	if invalid > 0 {
		fmt.Fprintf(&b, "invalid  %6d, which the function parks\n", invalid)
	}
	return b.String()
}

// isJSONLines reports whether one line at least is meant as a message.
func isJSONLines(messages []Message) bool {
	return !strings.HasPrefix(messages[0].body, "[") && slices.ContainsFunc(messages, func(m Message) bool {
		return strings.HasPrefix(m.body, "{") && json.Valid([]byte(m.body))
	})
}

// Source is a file of messages, and how to read it.
type Source struct {
	File   string            // - for standard input
	CSV    bool              // otherwise JSON, one message per line
	Column map[string]string // what the header of a CSV file calls a column
}

// Name is the file's name in errors.
func (p Source) Name() string {
	if p.File == "-" {
		return "standard input"
	}
	return p.File
}

// open returns what the file has, and what ends it.
func (p Source) open(in io.Reader) (text io.Reader, done func(), err error) {
	if p.File == "-" {
		return in, func() {}, nil
	}
	file, err := os.Open(p.File)
	return file, func() { _ = file.Close() }, err // it was only read
}

// Read returns the messages of the file.
func (p Source) Read(in io.Reader) (messages []Message, err error) {
	in, done, err := p.open(in)
	if err != nil {
		return nil, err
	}
	defer done()
	if !p.CSV {
		messages, err = p.lines(in)
	} else if messages, err = readCSV(in, p.Column); err != nil {
		err = fmt.Errorf("nothing posted: %s: %w", p.Name(), err)
	}
	decoder := jobs.NewDecoder()
	for n := range messages {
		m := &messages[n]
		m.Job, m.invalid = decoder.Decode(m.body)
	}
	return messages, err
}

func (p Source) lines(in io.Reader) (messages []Message, err error) {
	lines, n := bufio.NewScanner(in), 0
	lines.Buffer(nil, maxMessage)
	for ; lines.Scan(); n++ {
		if body := strings.TrimSpace(lines.Text()); body != "" && !strings.HasPrefix(body, "#") {
			messages = append(messages, newMessage(n+1, body))
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s:%d: line too long: want at most %d bytes", p.Name(), n+1, maxMessage)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", p.Name(), err)
	}
	return messages, nil
}
