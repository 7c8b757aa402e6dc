// Package batch reads files of messages and posts them: JSON lines, CSV, and what
// `discard --save` wrote. It parses no command line.
package batch

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"orderonce/adapters/sqs/orders"
	"orderonce/domain/order"
)

// CSVColumns are the columns of a CSV file of orders. Rows with the same orderId, one
// after the other, are the lines of one order.
func CSVColumns() []string {
	return []string{
		"orderId", "customerId", "currency", "sku", "quantity", "unitAmount", "payment.customer", "payment.method",
	}
}

// readCSV returns one message per order. header maps columns of csvColumns to the file's
// own names. An error names the line.
func readCSV(in io.Reader, header map[string]string) (all []Message, err error) {
	rows := csv.NewReader(in)
	first, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	index, err := indexOf(first, header, CSVColumns())
	if err != nil {
		return nil, err
	}
	var open order.Draft
	for line := 0; ; {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return flush(all, open, line), nil
		}
		if err != nil {
			return nil, err
		}
		now, _ := rows.FieldPos(0)
		next, err := orderOf(row, index)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", now, err)
		}
		if line > 0 && next.ID == open.ID {
			if differs(next, open) {
				return nil, fmt.Errorf("line %d: order %q: customer, currency or payment is not that of line %d",
					now, open.ID, line)
			}
			open.Lines = append(open.Lines, next.Lines...)
			continue
		}
		all, open, line = flush(all, open, line), next, now
	}
}

// differs reports whether two rows of one order disagree about anything but the line.
func differs(o, other order.Draft) bool {
	return o.CustomerID != other.CustomerID || o.Currency != other.Currency || o.Payment != other.Payment
}

// flush adds the message of an order that began in a line, if there is one.
func flush(all []Message, o order.Draft, line int) []Message {
	if line == 0 {
		return all
	}
	return append(all, Message{line: line, body: orders.Encode(o)})
}

// indexOf returns the position of each column in the header, of those that may be missing
// only if they are there.
func indexOf(first []string, header map[string]string, columns []string, more ...string) (map[string]int, error) {
	index, all := map[string]int{}, slices.Concat(columns, more)
	for column := range header {
		if !slices.Contains(all, column) {
			return nil, fmt.Errorf("--column %s: want one of %s", column, strings.Join(all, ", "))
		}
	}
	first[0] = strings.TrimPrefix(first[0], "\ufeff") // of a spreadsheet
	var missing []string
	for _, column := range all {
		name, renamed := header[column]
		if !renamed {
			name = column
		}
		if n := slices.Index(first, name); n >= 0 {
			index[column] = n
		} else if renamed || slices.Contains(columns, column) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("line 1: columns missing: %s: the header has %q; --column orderId=NAME renames one",
			strings.Join(missing, ", "), first)
	}
	return index, nil
}

// orderOf returns the order of one row.
func orderOf(row []string, index map[string]int) (order.Draft, error) {
	at := func(column string) string { return strings.TrimSpace(row[index[column]]) }
	quantity, err := Integer("quantity", at("quantity"))
	if err != nil {
		return order.Draft{}, err
	}
	amount, err := Integer("unitAmount", at("unitAmount"))
	return order.Draft{
		ID: at("orderId"), CustomerID: at("customerId"), Currency: at("currency"),
		Lines:   []order.Line{{SKU: at("sku"), Quantity: quantity, UnitAmount: amount}},
		Payment: order.Payment{Customer: at("payment.customer"), Method: at("payment.method")},
	}, err
}

// Integer parses a number of a column or a flag.
func Integer(column, value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s %q: want an integer; 1999 is an amount of 19.99 USD", column, value)
	}
	return n, nil
}
