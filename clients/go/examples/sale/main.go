// Command sale sells tickets on a running server: go run ./examples/sale ADDRESS ADMINISTRATOR_KEY.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"example.com/boxoffice"
	"example.com/boxoffice/api"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: sale ADDRESS ADMINISTRATOR_KEY")
	}
	client := boxoffice.Connect(os.Args[1], os.Args[2])
	ctx := context.Background()
	run := fmt.Sprintf("Go %d", time.Now().UnixNano())

	region := must(client.RegionsAPI.RegionCreate(ctx).RegionCreate(*api.NewRegionCreate("Accra "+run, "Ghana")).Execute())
	newVenue := api.NewVenueCreate("Theatre "+run, region.Self, "Liberia Road", -0.2009, 5.5527)
	venue := must(client.VenuesAPI.VenueCreate(ctx).VenueCreate(*newVenue).Execute())
	newCategory := api.NewCategoryCreate("Music "+run, []string{"Jazz"})
	category := must(client.CategoriesAPI.CategoryCreate(ctx).CategoryCreate(*newCategory).Execute())
	newHost := api.NewHostCreate("Live "+run, "Kofi", "kofi@example.com")
	host := must(client.HostsAPI.HostCreate(ctx).HostCreate(*newHost).Execute())
	newEvent := api.NewEventCreate(
		host.Self, "Jazz Night "+run, "Jazz, outdoors.", "Standard", true, category.Self, "Jazz", venue.Self)
	newEvent.SetStart("2999-12-20T19:00")
	newEvent.SetEnd("2999-12-20T23:00")
	event := must(client.EventsAPI.EventCreate(ctx).EventCreate(*newEvent).Execute())

	createSection := func(name string, basePrice float64) *api.Section {
		section := api.NewSectionCreate(name, basePrice, 60, "2020-01-01T00:00", "2999-12-20T19:00")
		return must(client.SectionsAPI.SectionCreate(ctx, idOf(event.Self)).SectionCreate(*section).Execute())
	}
	box := createSection("Box", 150_000.01)
	suite := createSection("Suite", 411_522.63)
	submission := must(client.EventsAPI.EventSubmissionCreate(ctx, idOf(event.Self)).Execute())
	must(client.ReviewAPI.SubmissionDelete(ctx, idOf(submission.Self)).Approved(true).Execute())

	newOrder := api.NewOrderCreate(map[string]int64{suite.Self: 3})
	order := must(client.OrdersAPI.OrderCreate(ctx).OrderCreate(*newOrder).Execute())
	pay := func(amount float64) *api.Payment {
		payment := api.NewPaymentCreate(api.PAYMENTMETHODINPUT_CARD)
		payment.SetToken("tok_approve")
		payment.SetAmount(amount)
		return must(client.PaymentsAPI.OrderPaymentCreate(ctx, order.Number).PaymentCreate(*payment).Execute())
	}
	payment := pay(order.Subtotal)
	pay(order.Fees)
	paid := must(client.OrdersAPI.OrderGet(ctx, order.Number).Execute())
	fmt.Printf("prices %.2f paid %.2f order %s\n", box.Price.Base, payment.Amount, paid.Status)
}

// must returns the result of an operation, or ends the program with its error.
func must[T any](result T, response *http.Response, err error) T {
	if err != nil {
		log.Fatal(boxoffice.AsError(err, response))
	}
	return result
}

// idOf returns the identifier at the end of a URI.
func idOf(uri string) string {
	return uri[strings.LastIndex(uri, "/")+1:]
}
