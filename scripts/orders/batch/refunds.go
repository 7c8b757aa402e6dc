package batch

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/jobs"
)

// Amount is an amount of money as a person or a file writes it: 19.99, or 1999 in minor
// units as in messages.
type Amount string

// UnmarshalText parses a flag or a column.
func (a *Amount) UnmarshalText(text []byte) error {
	if !regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,3})?$`).Match(text) {
		return fmt.Errorf("amount %q: want 19.99, or the same in minor units: 1999", text)
	}
	*a = Amount(text)
	return nil
}

// In returns the amount in a currency.
func (a Amount) In(c order.Currency) (order.Money, error) {
	whole, fraction, pointed := strings.Cut(string(a), ".")
	missing := c.Decimals() - len(fraction)
	switch {
	case pointed && missing < 0:
		currency := strings.ToUpper(string(c))
		return order.Money{}, fmt.Errorf("amount %s: %s has %d decimals", a, currency, c.Decimals())
	case pointed:
		whole += fraction + strings.Repeat("0", missing)
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	m := order.Money{Amount: n, Currency: c}
	if err == nil && n%c.Step() != 0 {
		err = fmt.Errorf("amount %s is %s: Stripe takes no such fraction", a, m)
	}
	return m, err
}

// Refund is a row of a file of refunds, as it was read: without the draft's amount.
type Refund struct {
	refund.Draft

	Line int
	Text Amount
}

// Request returns the refund, of an order in a currency.
func (r Refund) Request(c order.Currency) (refund.Request, error) {
	m, err := r.Text.In(c)
	if err != nil {
		return refund.Request{}, err
	}
	r.Amount = m.Amount
	return refund.New(r.Draft)
}

// NewRefund returns the message of a refund, from a line of a file.
func NewRefund(line int, r refund.Request) Message {
	return Message{Job: jobs.Job{Refund: r}, line: line, body: jobs.RefundBody(r)}
}

// ReadRefunds returns the refunds of a file: CSV with a header, or JSON lines, which
// begin with a brace. A row without a refundId or a reason has that of other. It returns
// an error if a refund has two rows, or if it is not clear what an amount means.
func (p Source) ReadRefunds(in io.Reader, other refund.Draft) (all []Refund, err error) {
	in, done, err := p.open(in)
	if err != nil {
		return nil, err
	}
	defer done()
	text, read := bufio.NewReader(in), p.refundRows
	if first, _ := text.Peek(1); string(first) == "{" {
		read = p.refundLines
	}
	if all, err = read(text, other); err == nil {
		err = unambiguous(all)
	}
	if err != nil {
		return nil, fmt.Errorf("nothing posted: %s: %w", p.Name(), err)
	}
	return all, nil
}

func unambiguous(all []Refund) error {
	lines, pointed := map[[2]string]int{}, map[bool]int{}
	for _, r := range all {
		key, is := [2]string{r.OrderID, r.RefundID}, strings.Contains(string(r.Text), ".")
		if twin := lines[key]; twin > 0 {
			return fmt.Errorf("line %d: refund %q of order %q is in line %d too: "+
				"add the amounts, or give each a refundId", r.Line, r.RefundID, r.OrderID, twin)
		}
		if other := pointed[!is]; other > 0 {
			return fmt.Errorf("line %d: amount %s: of it and that of line %d, one has a decimal point: "+
				"write 20.00 for 20, or all amounts in minor units", r.Line, r.Text, other)
		}
		lines[key], pointed[is] = r.Line, r.Line
	}
	return nil
}

func (p Source) refundRows(in io.Reader, other refund.Draft) (all []Refund, err error) {
	columns := []string{"orderId", "amount"}
	for row, err := range csvRows(in, p.Column, columns, "refundId", "reason", "currency") {
		if err != nil {
			return nil, err
		}
		r := Refund{Draft: other, Line: row.line}
		r.OrderID, r.Currency = row.at("orderId"), strings.ToLower(row.at("currency"))
		r.RefundID, r.Reason = cmp.Or(row.at("refundId"), r.RefundID), cmp.Or(row.at("reason"), r.Reason)
		if err := r.Text.UnmarshalText([]byte(row.at("amount"))); err != nil {
			return nil, fmt.Errorf("line %d: %w", row.line, err)
		}
		all = append(all, r)
	}
	return all, nil
}

func (p Source) refundLines(in io.Reader, other refund.Draft) (all []Refund, err error) {
	messages, err := p.lines(in)
	for _, m := range messages {
		r := struct {
			refund.Draft

			Type   string
			Amount json.Number
		}{Draft: other}
		decoder := json.NewDecoder(strings.NewReader(m.body))
		decoder.DisallowUnknownFields()
		err := decoder.Decode(&r)
		var amount Amount
		if err = cmp.Or(err, amount.UnmarshalText([]byte(r.Amount))); err != nil {
			return nil, fmt.Errorf("line %d: %w", m.line, err)
		}
		all = append(all, Refund{r.Draft, m.line, amount})
	}
	return all, err
}
