// Command order orders two tickets, as the README does: go run ./examples/order KEY.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"example.com/boxoffice"
	"example.com/boxoffice/api"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: order KEY")
	}
	key, ctx := os.Args[1], context.Background()

	client := boxoffice.Connect("http://127.0.0.1:8080", key)
	newOrder := api.NewOrderCreate(map[string]int64{"/sections/17637000000062": 2})
	order, response, err := client.OrdersAPI.OrderCreate(ctx).OrderCreate(*newOrder).Execute()

	if err != nil {
		log.Fatal(boxoffice.AsError(err, response))
	}
	fmt.Println(order.Number)
}
