package boxoffice

import (
	"errors"
	"net/http"
)

// Page is a page of a list.
type Page[T any] interface {
	GetEntries() []T
	GetTotal() int64
}

// Iterator reads the entries of all pages of a list. A page is read when its first entry is needed.
//
// The server evaluates the list again for each page: an entry may be missing or come twice if the list changes in between.
type Iterator[T any] struct {
	load     func(page int64) (Page[T], error)
	page     int64
	received int64
	isLast   bool
	entries  []T
	entry    T
	err      error
}

// Entries returns an iterator over the entries of a list. load reads the page of a number, from 1, each with the same Records.
func Entries[T any, P Page[T]](load func(page int64) (P, *http.Response, error)) *Iterator[T] {
	return &Iterator[T]{load: func(number int64) (Page[T], error) {
		page, response, err := load(number)
		return page, AsError(err, response)
	}}
}

// Next reads the next entry. It returns false after the last one, and after an error.
func (i *Iterator[T]) Next() bool {
	if len(i.entries) == 0 && !i.isLast {
		i.nextPage()
	}
	if len(i.entries) == 0 {
		return false
	}
	i.entry, i.entries = i.entries[0], i.entries[1:]
	return true
}

// Entry returns the entry that Next has read.
func (i *Iterator[T]) Entry() T { return i.entry }

// Err returns the error that ended the iteration, as AsError does, or nil.
func (i *Iterator[T]) Err() error { return i.err }

func (i *Iterator[T]) nextPage() {
	i.page++
	page, err := i.load(i.page)
	if err != nil {
		i.isLast = true
		var apiError *Error
		// The list may have become shorter.
		if i.page == 1 || !errors.As(err, &apiError) || apiError.Code != "page.past-end" {
			i.err = err
		}
		return
	}
	// A page may have fewer entries than requested, so page numbers don't reveal the last one.
	i.entries = page.GetEntries()
	i.received += int64(len(i.entries))
	i.isLast = len(i.entries) == 0 || i.received >= page.GetTotal()
}
