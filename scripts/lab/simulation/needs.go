package simulation

import "slices"

// Needs lists the kinds of trouble without which a story does not happen, sorted: what
// was chosen in it, and what is unusual about its world. It is empty if the usual course
// is enough. A story is short enough for this only after Shortest, which has tried to
// leave out each of them.
func (f Finding) Needs() []string {
	w := NewLab().World(f.Case, f.Tape.Chooser())
	w.Run()
	kinds := append(w.unusual, f.Case.oddities()...)
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// oddities lists what is unusual about a world before anything has happened in it.
func (c *Case) oddities() (all []string) {
	odd := func(is bool, kind string) {
		if is {
			all = append(all, kind)
		}
	}
	odd(c.Gap < visibility && !c.Restless, "delivered again after "+c.Gap.String())
	odd(c.Gap > visibility, "a pause of "+c.Gap.String())
	odd(c.KeyLife > 0, "keys that live "+c.KeyLife.String())
	odd(c.KeyLife < 0, "keys that are never kept")
	odd(c.Receives > 0, "few receives before the dead-letter queue")
	odd(c.Batch > 1 && !c.FIFO, "a batch")
	odd(c.FIFO, "a FIFO group")
	for i, m := range c.Messages {
		odd(m.Poison != "", "a message that is no order")
		odd(m.Poison == "" && m.Method != visa && m.Method != mastercard, oddMethod(m.Method))
		for _, earlier := range c.Messages[:i] {
			odd(earlier == m, "an order sent twice")
			odd(earlier.ID == m.ID && earlier != m, "another content under the same id")
			odd(earlier.ID != m.ID, "another order")
		}
	}
	return all
}

func oddMethod(method string) string {
	switch method {
	case declined:
		return "a declined card"
	case wantsMe:
		return "a bank that wants the customer"
	case takesDays:
		return "a bank that takes days"
	}
	return "a card that does not exist"
}

// fewer are the cases that lack one message of this one.
func (c *Case) fewer() (all []Case) {
	for i := range slices.Backward(c.Messages) {
		if len(c.Messages) > 1 {
			less := *c
			less.Messages = slices.Delete(slices.Clone(c.Messages), i, i+1)
			all = append(all, less)
		}
	}
	return all
}

// plainer are the cases that lack one oddity of this one.
func (c *Case) plainer() (all []Case) {
	try := func(change func(*Case)) {
		plain := *c
		plain.Messages = slices.Clone(c.Messages)
		change(&plain)
		all = append(all, plain)
	}
	if c.Gap != visibility {
		try(func(c *Case) { c.Gap = visibility })
	}
	if c.KeyLife != 0 {
		try(func(c *Case) { c.KeyLife = 0 })
	}
	if c.Receives != 0 {
		try(func(c *Case) { c.Receives = 0 })
	}
	if c.FIFO || c.Batch > 1 {
		try(func(c *Case) { c.FIFO, c.Batch = false, 1 })
	}
	for _, m := range c.Messages {
		if m.Method == visa || m.Poison != "" {
			continue
		}
		try(func(c *Case) {
			for i := range c.Messages { // also its copies, which would be conflicts else
				if c.Messages[i] == m {
					c.Messages[i].Method = visa
				}
			}
		})
	}
	return all
}
