"""A healthy CRUD server in FastAPI: `compare` must find nothing wrong with it. `FAULTS=1` plants seven bugs."""

import os
from typing import Annotated

from fastapi import FastAPI, HTTPException, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

FAULTY = os.environ.get("FAULTS") == "1"


class NewBook(BaseModel):
    # Without `strict`, the text "152" is a number, although the document says otherwise.
    model_config = ConfigDict(extra="forbid", strict=True)

    title: str = Field(min_length=1, max_length=100, examples=["Anansi the Spider"])
    author: str = Field(min_length=1, max_length=100, examples=["Peggy Appiah"])
    pages: int = Field(ge=1, le=5000, examples=[152])
    price: float = Field(ge=0, le=1000, examples=[12.5])


class Book(NewBook):
    id: int = Field(ge=1, examples=[1])


class Problem(BaseModel):
    detail: str = Field(examples=["There is no such book."])


BookId = Annotated[int, Path(alias="book_id", ge=1, le=2**31, examples=[1])]
NOT_FOUND = {404: {"model": Problem, "description": "There is no such book."}}

app = FastAPI(title="Books", version="1.0.0")
books: dict[int, Book] = {}
last_id = 0


def find(book_id: int) -> Book:
    if book_id not in books:
        raise HTTPException(404, "There is no such book.")
    return books[book_id]


@app.get("/books", tags=["Books"], operation_id="book_list")
def list_books(
    author: Annotated[str | None, Query(max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=50)] = 50,
    offset: Annotated[int, Query(ge=0)] = 0,
) -> list[Book]:
    # Bug 1: the filter is ignored.
    found = [book for book in books.values() if FAULTY or author is None or book.author == author]
    return found[offset : offset + limit]


@app.post("/books", tags=["Books"], operation_id="book_create", status_code=201)
def create_book(book: NewBook, response: Response) -> Book:
    global last_id
    last_id += 1
    # Bug 2: cents are lost.
    price = round(book.price) if FAULTY else book.price
    books[last_id] = Book(id=last_id, **book.model_dump(exclude={"price"}), price=price)
    response.headers["Location"] = f"/books/{last_id}"
    return books[last_id]


@app.get("/books/{book_id}", tags=["Books"], operation_id="book_read", responses=NOT_FOUND)
def read_book(book_id: BookId) -> Book:
    # Bug 3: an unknown book causes a failure of the server.
    return books[book_id] if FAULTY else find(book_id)


@app.put("/books/{book_id}", tags=["Books"], operation_id="book_update", responses=NOT_FOUND)
def update_book(book_id: BookId, book: NewBook) -> Book:
    find(book_id)
    updated = Book(id=book_id, **book.model_dump())
    # Bug 4: the number of pages is not stored, although the response shows it.
    books[book_id] = updated.model_copy(update={"pages": books[book_id].pages}) if FAULTY else updated
    return updated


@app.delete("/books/{book_id}", tags=["Books"], operation_id="book_delete", status_code=204, responses=NOT_FOUND)
def delete_book(book_id: BookId) -> None:
    book = find(book_id)
    # Bug 5: a book that was deleted can still be read.
    if not FAULTY:
        books.pop(book.id)


class Counts(BaseModel):
    books: int = Field(ge=0)
    pages: int = Field(ge=0)


# Bug 6: the response has another type than the document says.
@app.get("/counts", tags=["Books"], operation_id="count_read", response_model=None if FAULTY else Counts, responses={200: {"model": Counts}})
def read_counts() -> object:
    pages = sum(book.pages for book in books.values())
    return {"books": str(len(books)), "pages": pages} if FAULTY else Counts(books=len(books), pages=pages)


class Author(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=50, examples=["Ama Ata Aidoo"])


# Bug 7: a name above the declared length is accepted.
@app.post("/authors/check", tags=["Authors"], operation_id="author_check")
def check_author(author: dict if FAULTY else Author) -> Author:
    return Author.model_construct(name=str(author.get("name", ""))) if FAULTY else author


if FAULTY:
    # The document still declares the body.
    document = app.openapi()
    schemas = document["components"]["schemas"]
    schemas["Author"]["properties"]["name"].update(minLength=1, maxLength=50)
    body = document["paths"]["/authors/check"]["post"]["requestBody"]["content"]["application/json"]
    body["schema"] = {"$ref": "#/components/schemas/Author"}
